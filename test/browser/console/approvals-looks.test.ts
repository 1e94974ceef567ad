/** The page of approvals in both colour schemes, on a large screen and a small one. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { axe } from "../../support/axe.ts";
import { noSidewaysScroll } from "../../support/browser.ts";
import { type ApprovalConsole, bar, openApprovals, rows } from "./approvals-support.ts";

setDefaultTimeout(90_000);
let stage: ApprovalConsole;
beforeAll(async () => {
  stage = await openApprovals();
});
afterAll(() => stage.close());

for (const scheme of ["light", "dark"] as const) {
  for (const width of [1_440, 390] as const) {
    test(`an empty page: ${scheme}, ${width} px`, async () => {
      const { page, complaints, close } = await stage.open("/approvals", { scheme, width });
      await page.getByRole("heading", { name: "Nothing is waiting for a person" }).waitFor();
      expect(await axe(page)).toEqual([]);
      await noSidewaysScroll(page);
      expect(complaints).toEqual([]);
      await close();
    });
  }
}

test("pending and decided calls are shown together", async () => {
  for (const to of ["a", "b", "c"]) {
    const each = await stage.ask({ arguments: { to } });
    expect((await stage.decide(each, { decision: "deny", reason: `not to ${to}` })).status).toBe(200);
  }
  for (const index of Array(14).keys()) {
    const text = `${"A long text, so that it has to be broken somewhere. ".repeat(20)} ${"x".repeat(200)}`;
    const says = `I have thought about ${index} things. `.repeat(30);
    await stage.ask({ looks: true, says, arguments: { to: `person ${index}`, text } });
  }
});

for (const scheme of ["light", "dark"] as const) {
  for (const width of [1_440, 390] as const) {
    test(`the list, a decision with its forms, and decided calls: ${scheme}, ${width} px`, async () => {
      const { page, complaints, close } = await stage.open("/approvals", { scheme, width, height: 844 });
      const check = async () => {
        expect(await axe(page)).toEqual([]);
        await noSidewaysScroll(page);
      };
      await rows(page).first().waitFor();
      await check();
      await rows(page).nth(1).getByRole("link").click();
      await page.getByText(/^The last 3 times/).waitFor();
      await page.getByText("this call").waitFor();
      await check();
      for (const [button, field] of [
        ["Deny …", "Why is desk.send denied?"],
        ["Approve …", "Reason (optional)"],
        ["Change …", "Arguments as JSON"],
      ] as const) {
        await bar(page).getByRole("button", { name: button }).click();
        await page.getByLabel(field).waitFor();
        if (button === "Change …") await page.getByLabel(field).fill('{ "to": "x\\u202e" }');
        await check();
        await bar(page).getByRole("button", { name: "Back" }).click();
      }
      const leave = page.getByRole("button", { name: "Leave without saving" });
      if (width === 390) {
        await page.getByRole("link", { name: "All waiting" }).click();
        await leave.click();
        await rows(page).first().waitFor();
        await page.getByRole("link", { name: "Decided" }).click();
      } else {
        await page.getByRole("link", { name: "Decided" }).click();
        await leave.click();
      }
      await page.getByRole("region", { name: "Decided calls" }).getByRole("link").first().click();
      await bar(page)
        .getByText(/the call was/)
        .waitFor();
      await check();
      expect(complaints).toEqual([]);
      await close();
    });
  }
}
