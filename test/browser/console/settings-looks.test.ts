/** Everybody can use the settings: in both colour schemes, at two widths, with long and hostile texts in them. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { axe } from "../../support/axe.ts";
import { noSidewaysScroll } from "../../support/browser.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(90_000);
const MARKUP = `<img src=x onerror="document.title='run'"><script>alert(1)</script>`;
let stage: TestConsole;

beforeAll(async () => {
  // Nothing listens at this address, so deliveries fail and wait.
  stage = await openConsole({ more: `notify: { webhook: "http://127.0.0.1:9/hook" }` });
  const { gateway } = stage;
  await gateway.agent("a-name-that-is-as-long-as-the-name-of-an-agent-may-be-at-all-01");
  await gateway.token({
    name: `${MARKUP} ${"long ".repeat(25)}`,
    person: MARKUP,
    role: MARKUP,
    agent: "a-name-that-is-as-long-as-the-name-of-an-agent-may-be-at-all-01",
    scopes: [
      "agents:read",
      "tasks:read",
      "tasks:write",
      "vault:read",
      "vault:write",
      `tools:${"x".repeat(190)}.*`,
    ],
    expires_in: "2d",
  });
  for (let count = 0; count < 6; count++) {
    await gateway.token({ name: `service ${count}`, scopes: ["admin"], person: "Grace Hopper" });
  }
  // One of these exceeds the limit and causes a notice.
  await gateway.call("PATCH", "/v1/workspace", { body: { limits: { requests_per_minute: 1 } } });
  for (let count = 0; count < 3; count++) await gateway.call("GET", "/v1/session");
  await gateway.call("PATCH", "/v1/workspace", { body: { limits: { requests_per_minute: 1_000_000 } } });
});
afterAll(() => stage.close());

const SECTIONS = ["Developers", "Limits", "Notifications", "Models", "Sessions", "About"] as const;
const settled = (page: Page) => page.locator("main h2").first().waitFor();

async function isWell(page: Page): Promise<void> {
  expect(await axe(page)).toEqual([]);
  await noSidewaysScroll(page);
}

for (const scheme of ["light", "dark"] as const) {
  for (const width of [390, 1_440]) {
    test(`axe finds nothing serious in any section, ${scheme}, ${width} px`, async () => {
      const { page, complaints, close } = await stage.open("/settings", { scheme, width });
      for (const section of SECTIONS) {
        await page.getByRole("link", { name: section, exact: true }).click();
        await page.waitForURL(stage.at(`/settings/${section.toLowerCase()}`));
        await settled(page);
        if (section === "Developers") await page.getByRole("button", { name: "Rotate admin" }).waitFor();
        if (section === "Notifications") {
          await page.getByText("More requests than the limit").waitFor();
          await page.getByRole("row").filter({ hasText: "limit.exceeded" }).waitFor();
        }
        await isWell(page);
      }
      await page.goto(stage.at("/settings/developers?issue=1"));
      await page.getByLabel("Name", { exact: true }).fill(`${scheme} ${width}`);
      await page.getByLabel("tasks:write").check();
      await isWell(page);
      await page.getByRole("button", { name: "Issue token", exact: true }).click();
      await page.getByRole("region", { name: "Secret", exact: true }).waitFor();
      await isWell(page);
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByRole("button", { name: "I have saved it" }).click();
      await page.getByRole("button", { name: "Revoke admin" }).click();
      await page.getByText("You are signed in with this token.").waitFor();
      await isWell(page);
      expect(complaints).toEqual([]);
      await close();
    });
  }
}
