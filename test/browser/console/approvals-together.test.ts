/** What happens to a call that somebody has open when other people decide or time passes. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../../src/base/log.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { type Gateway, openGateway } from "../../../src/gateway.ts";
import { FakeClock } from "../../support/clock.ts";
import { type ApprovalConsole, argumentsOf, bar, openApprovals, rows } from "./approvals-support.ts";

setDefaultTimeout(90_000);
const HOUR = 3_600_000;
const clock = new FakeClock(Date.now());
const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-approvals-"));
let stage: ApprovalConsole;
let second: Gateway | undefined;
let ann: string;
let bo: string;
/** Moves the clock in steps, because the feed gathers its messages by the same clock. */
let ticking: ReturnType<typeof setInterval>;

beforeAll(async () => {
  ticking = setInterval(() => clock.advance(50), 50);
  const more = "approvals: { expire_hours: 1 }";
  stage = await openApprovals({ clock, dataDir, more });
  ann = await stage.person("Ann Lee");
  bo = await stage.person("Bo Okonkwo");
});
afterAll(async () => {
  if (second) {
    // The stage's first gateway was stopped by its test.
    await Promise.all([stage.browser.close(), stage.model.close(), stage.tools.close()]);
    await second.stop();
  } else {
    await stage.close();
  }
  clearInterval(ticking);
  rmSync(dataDir, { recursive: true, force: true });
});

test("two people approve, each in their own browser; one approval is not enough, and nobody can approve twice", async () => {
  const asked = await stage.ask({ agent: "pair", arguments: { to: "both" } });
  const first = await stage.open(asked.page, { secret: ann });
  const other = await stage.open(asked.page, { secret: bo });
  await other.page.getByText("2 people have to approve").waitFor();
  await bar(first.page).getByRole("button", { name: "Approve …" }).click();
  await bar(first.page).getByRole("button", { name: "Approve the call" }).click();
  await first.page.getByRole("status").getByText("1 more person has to approve").waitFor();
  expect(await stage.now(asked)).toMatchObject({ status: "pending", approved_by: [{ person: "Ann Lee" }] });
  // The other person sees it without a reload, and a person who has approved cannot approve again.
  await other.page.getByText("1 of 2 approved").waitFor();
  await first.page.goto(stage.at(asked.page));
  await bar(first.page).getByText("You approved it as Ann Lee.").waitFor();
  expect(await bar(first.page).getByRole("button", { name: "Approve …" }).count()).toBe(0);
  await bar(other.page).getByRole("button", { name: "Approve …" }).click();
  await bar(other.page).getByRole("button", { name: "Approve the call" }).click();
  await other.page.getByRole("status").getByText("Approved: pair calls desk.send.").waitFor();
  expect((await stage.now(asked)).status).toBe("approved");
  await bar(first.page).getByText("by Ann Lee, Bo Okonkwo").waitFor();
});

test("a call that is decided elsewhere shows who decided and why, and offers no more buttons", async () => {
  const asked = await stage.ask({ arguments: { to: "elsewhere" } });
  const { page } = await stage.open(asked.page, { secret: ann });
  await bar(page).getByRole("button", { name: "Approve …" }).waitFor();
  await page.keyboard.press("a");
  await bar(page).getByRole("button", { name: "Approve the call" }).waitFor();
  await stage.decide(asked, { decision: "deny", reason: "seen by Bo" }, bo);
  await bar(page).getByText("by Bo Okonkwo: the call was not made.").waitFor();
  await bar(page).getByText("seen by Bo").waitFor();
  expect(await bar(page).getByRole("button", { name: "Approve the call" }).count()).toBe(0);
});

test("a decision that comes too late is refused with an explanation, and the page shows the outcome", async () => {
  const asked = await stage.ask({ arguments: { to: "too late" } });
  const { page, context } = await stage.browser.page();
  // The feed is cut off, so only the refusal can tell the page.
  await context.route("**/v1/events", (route) => route.abort());
  await page.goto(stage.at(asked.page));
  await stage.signIn(page, ann);
  await bar(page).getByRole("button", { name: "Approve …" }).click();
  // Somebody else decides after the page has sent its decision and before the server receives it.
  await context.route("**/v1/tasks/*/approvals/*", async (route) => {
    await stage.decide(asked, { decision: "deny", reason: "first" }, bo);
    await route.continue();
  });
  await bar(page).getByRole("button", { name: "Approve the call" }).click();
  await bar(page).getByRole("alert").getByText("Somebody else has already decided.").waitFor();
  await bar(page).getByText("by Bo Okonkwo: the call was not made.").waitFor();
});

test("arguments that somebody changes are shown before they can be approved", async () => {
  const asked = await stage.ask({ agent: "pair", arguments: { to: "before" } });
  const { page } = await stage.open(asked.page, { secret: ann });
  await bar(page).getByRole("button", { name: "Approve …" }).waitFor();
  await page.keyboard.press("a");
  await bar(page).getByRole("button", { name: "Approve the call" }).waitFor();
  const changed = { decision: "approve", arguments: { to: "after" }, arguments_hash: asked.arguments_hash };
  expect((await stage.decide(asked, changed, bo)).status).toBe(200);
  await page.getByRole("alert").getByText("The arguments were changed while this page was open.").waitFor();
  expect(await bar(page).getByRole("button", { name: "Approve the call" }).count()).toBe(0);
  expect(await argumentsOf(page).textContent()).toContain('"after"');
  await page.getByText("Changed by Bo Okonkwo: not what the agent had asked for").waitFor();
  await page.keyboard.press("a");
  await page.keyboard.press("Enter");
  await page.getByRole("status").getByText("Approved: pair calls desk.send.").waitFor();
  expect(await stage.now(asked)).toMatchObject({ status: "approved", arguments: { to: "after" } });
});

test("an approval does not cover arguments that change just before it is sent", async () => {
  const asked = await stage.ask({ agent: "pair", arguments: { to: "shown" } });
  const { page, context } = await stage.open(asked.page, { secret: ann });
  await bar(page).getByRole("button", { name: "Approve …" }).click();
  const changed = {
    decision: "approve",
    arguments: { to: "not shown" },
    arguments_hash: asked.arguments_hash,
  };
  await context.route("**/v1/tasks/*/approvals/*", async (route) => {
    await stage.decide(asked, changed, bo);
    await route.continue();
  });
  await bar(page).getByRole("button", { name: "Approve the call" }).click();
  await bar(page).getByRole("alert").getByText("The arguments or the tool have changed.").waitFor();
  await argumentsOf(page).getByText("not shown").waitFor();
  expect(await stage.now(asked)).toMatchObject({
    status: "pending",
    approved_by: [{ person: "Bo Okonkwo" }],
  });
  await stage.decide(asked, { decision: "deny" }, bo);
});

test("a call that expires while it is open says so, and leaves the list", async () => {
  const asked = await stage.ask({ arguments: { to: "nobody" } });
  const { page } = await stage.open(asked.page, { secret: ann });
  await rows(page).getByText("nobody").waitFor();
  await bar(page).getByRole("button", { name: "Approve …" }).waitFor();
  clock.advance(HOUR + 10_000);
  await bar(page).getByText("Nobody decided in time: the call was not made.").waitFor();
  await page.getByRole("heading", { name: "Nothing is waiting for a person" }).waitFor();
  expect(await stage.now(asked)).toMatchObject({ status: "expired", decided_by: null });
});

test("a typed reason survives a lost server, and is sent once the server is back", async () => {
  const asked = await stage.ask({ arguments: { to: "patience" } });
  const other = await stage.ask({ arguments: { to: "gone meanwhile" } });
  const { page } = await stage.open(asked.page, { secret: ann });
  await bar(page).getByRole("button", { name: "Deny …" }).click();
  await page.getByLabel("Why is desk.send denied?").fill("I am still here");
  const { gateway } = stage;
  await gateway.gateway.stop();
  await bar(page).getByRole("button", { name: "Deny the call" }).click();
  await bar(page).getByText("The server does not answer.").waitFor();
  const { config } = loadConfig({
    flags: { data: dataDir, listen: new URL(gateway.url).host },
    env: { GATEHOUSE_ADMIN_TOKEN: gateway.admin },
    cwd: dataDir,
  });
  second = await openGateway(config, { log: silentLog, handOverAdmin: () => {}, clock });
  await second.start();
  await stage.decide(other, { decision: "deny" }, bo);
  await page.getByText("Live", { exact: true }).waitFor();
  await rows(page).getByText("gone meanwhile").waitFor({ state: "detached" });
  expect(await page.getByLabel("Why is desk.send denied?").inputValue()).toBe("I am still here");
  await bar(page).getByRole("button", { name: "Deny the call" }).click();
  await page.getByRole("status").getByText("Denied: clerk continues without desk.send.").waitFor();
  expect(await stage.now(asked)).toMatchObject({ status: "denied", reason: "I am still here" });
});
