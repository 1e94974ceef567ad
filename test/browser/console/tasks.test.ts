/** The list of tasks in the console, and the form for a new one. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { becomes, eventually } from "../../support/browser.ts";
import { until } from "../../support/until.ts";
import { dispatch, ended, held, ledger } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);

let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
});
afterAll(() => stage.close());

/** Pages left open would continue to read whatever the feed reports. */
let closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing) await close();
  closing = [];
});
const open: TestConsole["open"] = async (...given) => {
  const opened = await stage.open(...given);
  closing.push(opened.close);
  return opened;
};

const unexpected = (complaints: readonly string[]) => complaints.filter((one) => !one.includes("401"));
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const link = (page: Page, name: string) => page.getByRole("link", { name, exact: true });
const field = (page: Page, name: string) => page.getByLabel(name, { exact: true });
/** The task's row, found by the first line of its prompt. */
const row = (page: Page, name: string) => page.getByRole("listitem").filter({ has: link(page, name) });
const tasks = async (query = "") =>
  (await stage.gateway.call("GET", `/v1/tasks?limit=200${query}`)).body.data;

test("a signed-out reader sees the sign-in page at the address, and the tasks after it", async () => {
  const { page } = await stage.browser.page();
  await page.goto(stage.at("/tasks?status=failed"));
  await button(page, "Sign in").waitFor();
  await stage.signIn(page);
  await page.getByRole("heading", { level: 1, name: "Tasks" }).waitFor();
  expect(page.url()).toBe(stage.at("/tasks?status=failed"));
  await page.close();
});

test("without the scope nothing is requested, and without the right to run there is no form", async () => {
  const blind = await open("/tasks", {
    secret: await stage.gateway.token({ scopes: ["agents:read"] }),
  });
  await blind.page.getByText("tasks:read").waitFor();
  expect(blind.requests.filter((address) => address.includes("/v1/tasks"))).toEqual([]);
  const reader = await open("/tasks?new", {
    secret: await stage.gateway.token({ scopes: ["tasks:read", "agents:read"] }),
  });
  await reader.page.getByRole("heading", { name: "Create an agent first" }).waitFor();
  expect(await link(reader.page, "New task").count()).toBe(0);
  expect(await link(reader.page, "Create an agent").count()).toBe(0);
  expect(await reader.page.getByRole("dialog").count()).toBe(0);
});

test("an empty list leads to the first agent, and then to the first task", async () => {
  const { page, complaints } = await open("/tasks");
  await link(page, "Create an agent").waitFor();
  await stage.gateway.agent("helper");
  await link(page, "Run the first task").click();
  await page.getByRole("dialog", { name: "New task" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(page.url()).toBe(stage.at("/tasks"));
  expect(unexpected(complaints)).toEqual([]);
});

test("a task is run by keyboard with every option of its form, and its page opens", async () => {
  await stage.gateway.agent("picky", {
    tier_policy: { tiers: [2] },
    tools: ["time.*", "vault.write"],
    approvals: ["vault.*"],
  });
  const { page, complaints } = await open("/tasks");
  await link(page, "New task").focus();
  await page.keyboard.press("Enter");
  await field(page, "Agent").last().focus();
  await page.keyboard.type("picky");
  await page.getByLabel("time.now").waitFor();
  const offered = page.getByRole("dialog").getByRole("checkbox");
  // The tools of the agent before may still be shown.
  await until(async () => (await offered.count()) === 2);
  await page.getByLabel("vault.write needs approval").waitFor();
  const tiers = await field(page, "Tier").locator("option").allTextContents();
  expect(tiers).toEqual(["The agent's lowest", expect.stringContaining("up/large")]);
  await field(page, "Tier").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Tab");
  await page.keyboard.type("What time is it?");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await button(page, "Add metadata").focus();
  await page.keyboard.press("Enter");
  await field(page, "Key 1").fill("ticket");
  await field(page, "Value 1").fill("8812");
  await field(page, "Value 1").press("Enter");
  await page.getByRole("heading", { level: 1, name: "What time is it?" }).waitFor();
  const [task] = await tasks("&agent=picky");
  expect(page.url()).toBe(stage.at(`/tasks/${task.id}`));
  expect(task).toMatchObject({ tier: 2, tools: ["time.now"], metadata: { ticket: "8812" } });
  expect(unexpected(complaints)).toEqual([]);
});

test("a refusal by the server is shown at its field, and the input is kept", async () => {
  const { page } = await open("/tasks?new=helper");
  await field(page, "Prompt").fill("keep me");
  await button(page, "Add metadata").click();
  await field(page, "Key 1").fill("k");
  // The field itself accepts at most 512 characters.
  await page.evaluate("document.querySelector('[aria-label=\"Value 1\"]').removeAttribute('maxlength')");
  await field(page, "Value 1").fill("x".repeat(600));
  await button(page, "Run the task").click();
  await page.getByRole("group", { name: "Metadata" }).locator(".error").waitFor();
  expect(await field(page, "Prompt").inputValue()).toBe("keep me");
  await stage.gateway.call("POST", "/v1/agents/helper/stop");
  await field(page, "Value 1").fill("y");
  await button(page, "Run the task").click();
  await page.getByRole("alert").getByText("Resume the agent or its workspace first.").waitFor();
  await becomes(field(page, "Agent").last(), "[aria-invalid=true]");
  await stage.gateway.call("POST", "/v1/agents/helper/resume");
  expect(await tasks("&agent=helper")).toEqual([]);
});

test("Escape, Cancel and going back discard a prompt only after confirmation", async () => {
  const { page } = await open("/tasks");
  await page.getByRole("link", { name: "New task" }).first().click();
  const form = page.getByRole("dialog", { name: "New task" });
  await form.waitFor();
  // Nothing has been typed, so no confirmation is needed.
  await page.keyboard.press("Escape");
  await form.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "New task" }).first().click();
  await field(page, "Prompt").fill("keep me");
  const ask = page.getByRole("dialog", { name: "Discard your input?" });
  await page.keyboard.press("Escape");
  await ask.getByRole("button", { name: "Keep editing" }).click();
  await ask.waitFor({ state: "detached" });
  await page.waitForFunction("document.activeElement.value === 'keep me'");
  await page.evaluate("history.back()");
  await page
    .getByRole("dialog", { name: "Leave without saving?" })
    .getByRole("button", { name: "Keep editing" })
    .click();
  expect(await field(page, "Prompt").inputValue()).toBe("keep me");
  await button(page, "Cancel").click();
  await button(page, "Discard").click();
  await form.waitFor({ state: "detached" });
});

test("a request whose answer was lost is repeated as the same task", async () => {
  const { page } = await open("/tasks?new=helper");
  await field(page, "Prompt").fill("only once");
  let keys: (string | null)[] = [];
  await page.route("**/v1/tasks", async (route) => {
    if (route.request().method() !== "POST") return route.fallback();
    keys = [...keys, await route.request().headerValue("idempotency-key")];
    if (keys.length > 1) return route.fallback();
    // The request arrives, but its answer does not.
    await route.fetch();
    return route.abort();
  });
  await button(page, "Run the task").click();
  await page.getByText("The server does not answer.").waitFor();
  await button(page, "Run the task").click();
  await page.getByRole("heading", { level: 1, name: "only once" }).waitFor();
  expect(keys).toHaveLength(2);
  expect(keys[0]).toBe(keys[1] ?? null);
  expect(await tasks("&agent=helper")).toHaveLength(1);
});

test("the list follows changes elsewhere, and reads one page for the prompts of all new tasks", async () => {
  const { gateway, model } = stage;
  const { page, requests } = await open("/tasks");
  await row(page, "only once").waitFor();
  const listed = () => requests.filter((address) => address.includes("/v1/tasks?")).length;
  const before = listed();
  const work = held({ chunks: ["done"], usage: { prompt_tokens: 1_000, completion_tokens: 1_000 } });
  model.script("small", work.script);
  const id = await dispatch(gateway, { agent: "helper", prompt: "\n  watch me\nand not this" });
  const others = ["and me", "me as well", "and me too"];
  for (const prompt of others) await dispatch(gateway, { agent: "helper", prompt });
  await row(page, "watch me").getByText("running", { exact: true }).waitFor();
  for (const prompt of others) await row(page, prompt).waitFor();
  work.open();
  await row(page, "watch me").getByText("succeeded", { exact: true }).waitFor();
  await row(page, "watch me").getByText("0.5").waitFor();
  expect(
    await page
      .getByRole("listitem")
      .filter({ has: page.locator(".task-row") })
      .first()
      .textContent(),
  ).toContain("and me too");
  expect(listed()).toBe(before + 1);
  // No task was read individually.
  const reads = (await ledger(gateway)).filter((entry) => entry.action === "task.read" && entry.task === id);
  expect(reads).toHaveLength(0);
  await link(page, "watch me").click();
  await page.getByRole("heading", { level: 1, name: "watch me" }).waitFor();
});

test("filters are kept in the address, apply to later tasks, and survive a reload", async () => {
  const { gateway, model } = stage;
  await gateway.agent("other");
  model.script("small", { chunks: ["yes"] });
  await ended(gateway, await dispatch(gateway, { agent: "other", prompt: "of the other" }));
  const { page } = await open("/tasks");
  await row(page, "of the other").waitFor();
  await field(page, "Agent").selectOption("other");
  await row(page, "only once").waitFor({ state: "detached" });
  await field(page, "Status").selectOption("running");
  await page.getByRole("heading", { name: "No task matches" }).waitFor();
  expect(page.url()).toBe(stage.at("/tasks?agent=other&status=running"));
  await page.reload();
  await page.getByRole("heading", { name: "No task matches" }).waitFor();
  const work = held();
  model.script("small", work.script);
  await dispatch(gateway, { agent: "helper", prompt: "not of this list" });
  const id = await dispatch(gateway, { agent: "other", prompt: "while it runs" });
  await row(page, "while it runs").waitFor();
  expect(await page.getByText("not of this list").count()).toBe(0);
  work.open();
  await ended(gateway, id);
  await row(page, "while it runs").waitFor({ state: "detached" });
});

test("a token that acts as an agent runs its own tasks, without a choice of agents", async () => {
  const secret = await stage.gateway.token({ agent: "helper" });
  stage.model.script("small", { chunks: ["mine"] });
  const { page } = await open("/tasks?new", { secret });
  expect(await field(page, "Agent").last().inputValue()).toBe("helper");
  await field(page, "Tier").fill("9");
  await field(page, "Prompt").fill("as myself");
  await button(page, "Run the task").click();
  await page.getByRole("dialog").locator(".error").waitFor();
  await field(page, "Tier").fill("");
  await button(page, "Run the task").click();
  await page.getByRole("heading", { level: 1, name: "as myself" }).waitFor();
  await eventually(async () => (await tasks("&agent=helper"))[0].prompt === "as myself");
  expect(await button(page, "Override …").count()).toBe(0);
});

test("tasks created while the page is hidden are read once it is visible", async () => {
  const { page, requests } = await open("/tasks");
  await row(page, "only once").waitFor();
  const show = (state: string) =>
    page.evaluate(`void (() => {
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "${state}" });
      document.dispatchEvent(new Event("visibilitychange"));
    })()`);
  const listed = () => requests.filter((address) => address.includes("/v1/tasks?")).length;
  const before = listed();
  await page.clock.install();
  await show("hidden");
  const id = await dispatch(stage.gateway, { agent: "helper", prompt: "seen by nobody" });
  await page.locator(`a[title="${id}"]`).waitFor();
  await page.clock.runFor(10_000);
  expect(listed()).toBe(before);
  await show("visible");
  await page.clock.runFor(10_000);
  await row(page, "seen by nobody").waitFor();
  expect(listed()).toBe(before + 1);
});

test("a narrow row shows whose task it is, and its time", async () => {
  const { page } = await open("/tasks", { width: 390 });
  const task = row(page, "only once");
  await task.getByText("helper", { exact: true }).waitFor();
  const box = await task.locator(".task-agent").boundingBox();
  expect(box?.width ?? 0).toBeGreaterThan(40);
  expect(await task.locator(".task-created time").isVisible()).toBe(true);
});
