/** One person on the page of approvals: what is shown before a decision, and what each decision does. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../../support/browser.ts";
import { type ApprovalConsole, argumentsOf, bar, openApprovals, rows } from "./approvals-support.ts";

setDefaultTimeout(90_000);
let stage: ApprovalConsole;
beforeAll(async () => {
  stage = await openApprovals();
});
afterAll(() => stage.close());

const MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>";
const HIDDEN = "safe\u202etxt.exe\u200b";

test("a reader who may not decide is told why, and no approvals are requested", async () => {
  const secret = await stage.gateway.token({ name: "reader", scopes: ["tasks:read"] });
  const { page, requests } = await stage.open("/approvals", { secret });
  await page.getByText("approvals:write").waitFor();
  expect(requests.filter((url) => url.includes("/v1/approvals"))).toEqual([]);
});

test("a token that acts as an agent sees what that agent requests, and cannot decide", async () => {
  const asked = await stage.ask({ arguments: { to: "agents" } });
  const other = await stage.ask({ agent: "pair", arguments: { to: "others" } });
  const scopes = ["approvals:write"];
  const secret = await stage.gateway.token({ name: "clerk's", scopes, agent: "clerk" });
  const { page } = await stage.open(asked.page, { secret });
  await bar(page).getByText("a person has to decide").waitFor();
  expect(await bar(page).getByRole("button", { disabled: false }).count()).toBe(0);
  await page.keyboard.press("a");
  await page.keyboard.press("d");
  expect(await bar(page).getByRole("textbox").count()).toBe(0);
  // Without tasks:read and agents:read the page names the missing scopes and still shows the request.
  await page.getByText("tasks:read", { exact: true }).waitFor();
  expect(await argumentsOf(page).textContent()).toContain('"to": "agents"');
  expect(await rows(page).count()).toBe(1);
  expect((await stage.now(asked)).status).toBe("pending");
  for (const each of [asked, other]) await stage.decide(each, { decision: "deny" });
});

test("an empty list explains what will appear here, and a new call appears live and in the title", async () => {
  const { page } = await stage.open("/approvals");
  await page.getByRole("heading", { name: "Nothing is waiting for a person" }).waitFor();
  expect(await page.title()).toBe("Approvals · Gatehouse");
  const asked = await stage.ask({ arguments: { to: "live" } });
  await rows(page).getByText("live").waitFor();
  await page.getByRole("status").getByText("New: clerk asks for desk.send.").waitFor({ state: "attached" });
  await eventually(async () => (await page.title()) === "(1) Approvals · Gatehouse");
  await stage.decide(asked, { decision: "deny" });
  await page.getByRole("heading", { name: "Nothing is waiting for a person" }).waitFor();
});

test("the address of a call survives signing in", async () => {
  const asked = await stage.ask({ arguments: { to: "later" } });
  const { page, complaints } = await stage.open(asked.page);
  expect(page.url()).toBe(stage.at(asked.page));
  await page.getByRole("heading", { name: "desk.send" }).waitFor();
  await page.reload();
  await argumentsOf(page).getByText("later").waitFor();
  expect(complaints).toEqual([]);
  await stage.decide(asked, { decision: "deny" });
});

test("markup and invisible characters are shown as text, wherever they come from", async () => {
  const before = await stage.ask({ arguments: { to: MARKUP } });
  await stage.decide(before, { decision: "deny", reason: `${MARKUP} ${HIDDEN}` });
  const asked = await stage.ask({
    words: `${MARKUP} ${HIDDEN}`,
    says: `${MARKUP} ${HIDDEN}`,
    looks: true,
    arguments: { to: MARKUP, text: HIDDEN },
  });
  const { page, complaints } = await stage.open(asked.page);
  const shown = await argumentsOf(page).textContent();
  expect(shown).toContain(JSON.stringify(MARKUP));
  expect(shown).toContain('"safe\\u202etxt.exe\\u200b"');
  await page.getByText("2 characters that cannot be seen").first().waitFor();
  for (const name of ["Prompt of the task", "What the model said in step 2"]) {
    const text = await page.getByRole("region", { name }).textContent();
    expect(text).toContain(MARKUP);
    expect(text).toContain("safe\\u202etxt.exe\\u200b");
  }
  await page.getByRole("blockquote").getByText("safe\\u202etxt.exe").waitFor();
  expect(await page.evaluate<string>("document.querySelector('main').innerText")).not.toMatch(
    /[\u202e\u200b]/,
  );
  expect(await page.locator("main img, main script").count()).toBe(0);
  expect(complaints).toEqual([]);
  await stage.decide(asked, { decision: "deny" });
});

test("the steps before a call, who requested it, and earlier decisions on such calls are shown beside it", async () => {
  const before = await stage.ask({ arguments: { to: "all", copies: 2 } });
  await stage.decide(before, { decision: "approve", reason: "as agreed" }, await stage.person("Ann Lee"));
  // The order of keys does not matter.
  const asked = await stage.ask({ looks: true, says: "Now I send.", arguments: { copies: 2, to: "all" } });
  const { page } = await stage.open(asked.page);
  const answers = page.getByRole("listitem").filter({ hasText: "Ann Lee" }).filter({ hasText: "as agreed" });
  await answers.getByText("same arguments").waitFor();
  await page.getByText(/With exactly these arguments: 1 approved/).waitFor();
  await page.getByText("Sends a message to people outside").waitFor();
  await page.getByText("can change or destroy").waitFor();
  await page.getByText("Ada Lovelace").waitFor();
  await page.getByText("Now I send.", { exact: true }).waitFor();
  await page.getByRole("group").filter({ hasText: "desk.look" }).getByText("succeeded").waitFor();
  await page.getByText("this call").waitFor();
  await page.getByText(asked.arguments_hash).waitFor();
  await stage.decide(asked, { decision: "deny" });
});

test("a denial without a reason is not sent; with a reason it is recorded, and the next call opens", async () => {
  const asked = await stage.ask({ arguments: { to: "deny me" } });
  const next = await stage.ask({ arguments: { to: "next" } });
  const { page } = await stage.open(asked.page, { secret: await stage.person("Ann Lee") });
  await bar(page).getByRole("button", { name: "Deny …" }).click();
  await bar(page).getByRole("button", { name: "Deny the call" }).click();
  await bar(page).getByText("Enter a reason").waitFor();
  expect((await stage.now(asked)).status).toBe("pending");
  await page.getByLabel("Why is desk.send denied?").fill("x".repeat(10_001));
  await bar(page).getByRole("button", { name: "Deny the call" }).click();
  await eventually(async () => (await bar(page).locator(".error").textContent()) !== "");
  expect(await page.getByLabel("Why is desk.send denied?").inputValue()).toHaveLength(10_001);
  await page.getByLabel("Why is desk.send denied?").fill("not to them");
  await bar(page).getByRole("button", { name: "Deny the call" }).click();
  await page.getByRole("status").getByText("Denied: clerk continues without desk.send.").waitFor();
  await page.waitForURL(stage.at(next.page));
  expect(await stage.now(asked)).toMatchObject({
    status: "denied",
    decided_by: "Ann Lee",
    reason: "not to them",
  });
  await stage.decide(next, { decision: "deny" });
});

test("changed arguments are checked by the page, then by the tool's schema, and approved as shown", async () => {
  const asked = await stage.ask({ arguments: { to: "everybody", copies: 2 } });
  const { page } = await stage.open(asked.page);
  await bar(page).getByRole("button", { name: "Change …" }).click();
  const box = page.getByLabel("Arguments as JSON");
  const approve = bar(page).getByRole("button", { name: "Approve these arguments" });
  expect(await approve.isDisabled()).toBe(true);
  await box.fill('{ "to": ');
  await bar(page).getByText("This is not valid JSON").waitFor();
  expect(await approve.isDisabled()).toBe(true);
  await box.fill('{ "to": "two", "copies": "many" }');
  await approve.click();
  await bar(page).locator(".error").getByText("/arguments/copies").waitFor();
  expect(await box.inputValue()).toBe('{ "to": "two", "copies": "many" }');
  expect((await stage.now(asked)).status).toBe("pending");
  await box.fill('{ "to": "two", "copies": 1 }');
  const diff = await page.getByRole("region", { name: "Your changes" }).textContent();
  expect(diff).toContain("everybody");
  expect(diff).toContain("two");
  await page.getByLabel("Reason (optional)").fill("fewer");
  await approve.click();
  await page.getByRole("status").getByText("Approved: clerk calls desk.send.").waitFor();
  expect(await stage.now(asked)).toMatchObject({
    status: "approved",
    reason: "fewer",
    arguments: { to: "two", copies: 1 },
  });
});

test("decided calls are filtered by decision, agent and tool, at an address that survives a reload", async () => {
  const others = await stage.ask({ agent: "clerk", arguments: { to: "left out" } });
  await stage.decide(others, { decision: "deny" });
  const mine = await stage.ask({ agent: "pair", arguments: { to: "filtered" } });
  await stage.decide(mine, { decision: "deny", reason: "found again" });
  const { page } = await stage.open("/approvals?tab=decided");
  const listed = page.getByRole("region", { name: "Decided calls" }).getByRole("listitem");
  await listed.getByText("found again").waitFor();
  await page.getByLabel("Agent", { exact: true }).fill("pair");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.waitForURL(/agent=pair/);
  await page.getByLabel("Decision", { exact: true }).selectOption("approved");
  await page.getByRole("heading", { name: "No matches" }).waitFor();
  await page.getByLabel("Decision", { exact: true }).selectOption("denied");
  await listed.getByText("found again").click();
  await page.reload();
  expect(page.url()).toBe(stage.at(`${mine.page}?tab=decided&agent=pair&decision=denied`));
  await bar(page).getByText("the call was not made").waitFor();
  await listed.getByText("found again").waitFor();
  expect(await listed.getByRole("link", { name: /clerk/ }).count()).toBe(0);
});

test.each([
  { width: 1440, height: 900 },
  { width: 1024, height: 700 },
  { width: 390, height: 800 },
])(
  "$width pixels wide, the second step moves nothing, and the message about the last decision covers no button",
  async (size) => {
    const asked = await stage.ask({ arguments: { to: "in sight" }, looks: true });
    const following = await stage.ask({ arguments: { to: "next" }, looks: true });
    const { page, close } = await stage.open(asked.page, size);
    await argumentsOf(page).scrollIntoViewIfNeeded();
    for (const key of ["a", "d"]) {
      const before = await argumentsOf(page).boundingBox();
      await page.keyboard.press(key);
      await bar(page).getByRole("textbox").waitFor();
      expect(await argumentsOf(page).boundingBox()).toEqual(before);
      await page.keyboard.press("Escape");
      await bar(page).getByRole("button", { name: "Approve …" }).waitFor();
    }
    await page.keyboard.press("a");
    await bar(page).getByRole("button", { name: "Approve the call" }).click();
    await page.waitForURL(stage.at(following.page));
    const news = await page.locator(".toast").boundingBox();
    const buttons = await bar(page).boundingBox();
    if (!news || !buttons) throw new Error("both are to be shown");
    expect(news.y + news.height).toBeLessThan(buttons.y);
    await stage.decide(following, { decision: "deny" });
    await close();
  },
);
