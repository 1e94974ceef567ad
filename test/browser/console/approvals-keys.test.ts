/** The page of approvals, used without a mouse. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { axe } from "../../support/axe.ts";
import { eventually } from "../../support/browser.ts";
import { type ApprovalConsole, type Asked, bar, openApprovals, rows } from "./approvals-support.ts";

setDefaultTimeout(90_000);
const WAITING = 50;
let stage: ApprovalConsole;
const asked: Asked[] = [];
beforeAll(async () => {
  stage = await openApprovals();
});
afterAll(() => stage.close());

const shown = (page: Page, { page: path }: Asked) => page.waitForURL(stage.at(path));

test("ten of 50 pending calls are decided by keyboard, in the order of their deadlines", async () => {
  for (let index = 0; index < WAITING; index++) {
    asked.push(await stage.ask({ arguments: { to: `person ${index}` } }));
  }
  const { page, complaints } = await stage.open("/approvals");
  await eventually(async () => (await page.title()) === `(${WAITING}) Approvals · Gatehouse`);
  // Only visible rows are drawn.
  expect(await rows(page).count()).toBeLessThan(WAITING);
  await page.keyboard.press("j");
  const [first, ...others] = asked.slice(0, 11) as [Asked, ...Asked[]];
  await shown(page, first);
  let current = first;
  for (const [index, next] of others.entries()) {
    await page
      .getByRole("region", { name: "Arguments of desk.send", exact: true })
      .getByText(`person ${index}"`)
      .waitFor();
    if (index % 2 === 0) {
      await page.keyboard.press("a");
      await bar(page).getByRole("button", { name: "Approve the call" }).waitFor();
      await page.keyboard.press("Enter");
    } else {
      await page.keyboard.press("d");
      await bar(page).getByRole("textbox").waitFor();
      // Shortcut keys are ordinary letters in this field.
      await page.keyboard.type("dejak?");
      await page.keyboard.press("Control+Enter");
    }
    await shown(page, next);
    const { status, reason } = await stage.now(current);
    expect([status, reason]).toEqual(index % 2 === 0 ? ["approved", null] : ["denied", "dejak?"]);
    current = next;
  }
  await eventually(async () => (await page.title()) === `(${WAITING - 10}) Approvals · Gatehouse`);
  expect(complaints).toEqual([]);
});

test("keys move through the list, keep the selected call in view, and decide nothing by themselves", async () => {
  const { page } = await stage.open("/approvals");
  await rows(page).first().waitFor();
  const open = asked.slice(10);
  for (const each of open.slice(0, 12)) {
    await page.keyboard.press("j");
    await shown(page, each);
  }
  const chosen = rows(page).getByRole("link", { name: /person 21"/ });
  // The link has the focus: a screen reader reads it, and the arrow keys continue from it.
  await eventually(async () =>
    (await page.evaluate<string>("document.activeElement.textContent")).includes('person 21"'),
  );
  const box = await chosen.boundingBox();
  expect(box !== null && box.y > 0 && box.y + box.height < 900).toBe(true);
  await page.keyboard.press("ArrowUp");
  await shown(page, open[10] as Asked);
  await page.keyboard.press("k");
  await shown(page, open[9] as Asked);
  // Opened and abandoned: nothing is sent.
  for (const key of ["a", "d", "e"]) {
    await page.keyboard.press(key);
    await bar(page).getByRole("button", { name: "Back" }).waitFor();
    await page.keyboard.press("Escape");
    await bar(page).getByRole("button", { name: "Approve …" }).waitFor();
  }
  // Keys with a modifier belong to the browser.
  await page.keyboard.press("Control+d");
  await page.keyboard.press("Alt+a");
  expect(await bar(page).getByRole("button", { name: "Back" }).count()).toBe(0);
  expect((await stage.now(open[9] as Asked)).status).toBe("pending");
});

test("a typed reason or changed arguments are discarded only after confirmation, also when the list's keys are used", async () => {
  const { page } = await stage.open((asked[15] as Asked).page);
  const ask = page.getByRole("dialog", { name: "Leave without saving?" });
  await bar(page).waitFor();
  await page.keyboard.press("d");
  await bar(page).getByRole("textbox").fill("because");
  await page.keyboard.press("Escape");
  await bar(page).getByRole("button", { name: "Deny …" }).waitFor();
  await page.keyboard.press("j");
  await ask.getByRole("button", { name: "Keep editing" }).click();
  await ask.waitFor({ state: "detached" });
  await page.keyboard.press("d");
  expect(await bar(page).getByRole("textbox").inputValue()).toBe("because");
  await bar(page).getByRole("textbox").fill("");
  await page.keyboard.press("Escape");
  await page.keyboard.press("e");
  await bar(page).getByLabel("Arguments as JSON").fill('{"to": "nobody"}');
  await rows(page).first().getByRole("link").first().click();
  await ask.getByRole("button", { name: "Keep editing" }).click();
  expect(await bar(page).getByLabel("Arguments as JSON").inputValue()).toBe('{"to": "nobody"}');
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await ask.getByRole("button", { name: "Leave without saving" }).click();
  await shown(page, asked[16] as Asked);
  expect((await stage.now(asked[15] as Asked)).status).toBe("pending");
});

test("holding down a key approves nothing", async () => {
  const each = asked[20] as Asked;
  const { page } = await stage.open(each.page);
  await bar(page).getByRole("button", { name: "Approve …" }).focus();
  await page.keyboard.down("Enter");
  await bar(page).getByRole("button", { name: "Approve the call" }).waitFor();
  // A held key sends keydown again without a keyup.
  await page.keyboard.down("Enter");
  await page.keyboard.down("Enter");
  await page.keyboard.up("Enter");
  await bar(page).getByRole("button", { name: "Approve the call" }).waitFor();
  expect((await stage.now(each)).status).toBe("pending");
});

test("the keyboard shortcuts are listed, and can be turned off permanently", async () => {
  const { page } = await stage.open((asked[30] as Asked).page);
  await bar(page).waitFor();
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keys" });
  await dialog.getByText("Deny, after entering a reason").waitFor();
  expect(await axe(page)).toEqual([]);
  await dialog.getByLabel("Use keyboard shortcuts on this page").uncheck();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.reload();
  await bar(page).waitFor();
  await page.keyboard.press("d");
  expect(await bar(page).getByRole("textbox").count()).toBe(0);
});
