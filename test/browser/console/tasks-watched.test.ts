/** A task's page in the console: what it shows while the task runs and afterwards, and what a person does there. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../../support/browser.ts";
import { dispatch, ended, held, ledger } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
const MARKUP = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
  await stage.gateway.agent("helper");
  await stage.gateway.agent("careful", { approvals: ["vault.write"] });
});
afterAll(() => stage.close());

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
const field = (page: Page, name: string) => page.getByLabel(name, { exact: true });
const activity = (page: Page) => page.getByRole("region", { name: "What happens" });
const timeline = (page: Page) => page.locator(".timeline");
const lastText = async (page: Page) => (await page.locator(".live-text").last().textContent()) ?? "";
const read = async (id: string) => (await stage.gateway.call("GET", `/v1/tasks/${id}`)).body;

test("words appear as they are generated, with markup as text, and the end is shown without a reload", async () => {
  const { gateway, model } = stage;
  const work = held({ chunks: ["First ", MARKUP, " last"] });
  model.script("small", work.script);
  const id = await dispatch(gateway, { agent: "helper", prompt: MARKUP, metadata: { [MARKUP]: MARKUP } });
  const { page, complaints } = await open(`/tasks/${id}`);
  await activity(page).getByText("last").waitFor();
  await page.getByText("running", { exact: true }).first().waitFor();
  expect(await lastText(page)).toBe(`First ${MARKUP} last`);
  expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe(MARKUP);
  work.open();
  await page.getByText("succeeded", { exact: true }).first().waitFor();
  await button(page, "Copy output").waitFor();
  expect(await lastText(page)).toBe((await read(id)).output);
  expect(await page.evaluate<number>("document.querySelectorAll('main img, main script').length")).toBe(0);
  expect(unexpected(complaints)).toEqual([]);
});

test("the words of a model that fails half-way are discarded, and the next model's appear once and complete", async () => {
  const { gateway, model } = stage;
  const cut = held({ chunks: ["these ", "words ", "go"] });
  model.script("small", (request, index) => {
    const script = typeof cut.script === "function" ? cut.script(request, index) : cut.script;
    return { ...script, cutAfter: 3 };
  });
  model.script("spare", { chunks: ["these ", "words ", "stay"] });
  const id = await dispatch(gateway, { agent: "helper", prompt: "fall back" });
  const { page } = await open(`/tasks/${id}`);
  // A cut connection may lose what its reader has not read yet.
  await activity(page).getByText("words go").waitFor();
  cut.open();
  await activity(page).getByText("discarded").waitFor();
  await activity(page).getByText("Fallback: up/small failed").waitFor();
  await page.getByText("succeeded", { exact: true }).first().waitFor();
  expect(await page.locator(".live-text").count()).toBe(1);
  expect(await lastText(page)).toBe("these words stay");
  await timeline(page).getByText("up/spare").waitFor();
  await timeline(page).getByText("failed", { exact: true }).waitFor();
});

test("tool calls are shown with arguments, outcome and time, on the axis and with a link to the ledger", async () => {
  const { gateway, model } = stage;
  model.script("small", (_, index) =>
    index === 0
      ? { chunks: ["Let me see. "], toolCalls: [{ name: "time__now", arguments: { zone: MARKUP } }] }
      : { chunks: ["Late."], usage: { prompt_tokens: 10_000, completion_tokens: 0 } },
  );
  const id = await dispatch(gateway, { agent: "helper", prompt: "the time", tools: ["time.now"] });
  const { tools_called: calls } = await ended(gateway, id);
  const { page } = await open(`/tasks/${id}`);
  const call = activity(page).getByRole("group").filter({ hasText: "time.now" });
  await call.getByText(calls[0].status, { exact: true }).waitFor();
  await call.locator("summary").press("Enter");
  await page.getByRole("region", { name: "Arguments of time.now" }).getByText(MARKUP.slice(0, 12)).waitFor();
  expect(await page.locator(".live-text").allTextContents()).toEqual(["Let me see. ", "Late."]);
  const spans = timeline(page).getByRole("listitem");
  await spans.nth(3).waitFor();
  expect(await spans.count()).toBe(4);
  const begun = (await ledger(gateway)).filter(
    ({ task, phase, action }) => task === id && phase !== "outcome" && action.endsWith(".call"),
  );
  const links = await timeline(page).getByRole("link").allTextContents();
  expect(links).toEqual(begun.map(({ seq }) => `Entry ${seq}`));
  await spans.nth(3).getByText("1 credits").waitFor();
});

test("without the ledger's scope the timeline has only tools, and says so", async () => {
  const { gateway } = stage;
  const [task] = (await gateway.call("GET", "/v1/tasks?agent=helper&limit=1")).body.data;
  const secret = await gateway.token({ scopes: ["tasks:read"] });
  const { page, requests } = await open(`/tasks/${task.id}`, { secret });
  await page.getByText("ledger:read").waitFor();
  await timeline(page).getByText("time.now").waitFor();
  expect(requests.filter((address) => address.includes("/v1/ledger"))).toEqual([]);
  for (const name of ["Override …", "Erase content …"]) expect(await button(page, name).count()).toBe(0);
  expect(await page.getByRole("link", { name: "Run again" }).count()).toBe(0);
});

test("a call that waits for a person links to its approval, and continues once it is decided", async () => {
  const { gateway, model } = stage;
  const input = { title: "Note", text: "x", scope: "support" };
  model.script("small", (_, index) =>
    index === 0 ? { toolCalls: [{ name: "vault__write", arguments: input }] } : { chunks: ["Written."] },
  );
  const id = await dispatch(gateway, { agent: "careful", prompt: "note it", tools: ["vault.write"] });
  const { page } = await open(`/tasks/${id}`);
  const link = activity(page).getByRole("link", { name: "Open the approval" });
  await link.waitFor();
  const [asked] = (await gateway.call("GET", "/v1/approvals")).body.data;
  expect(await link.getAttribute("href")).toBe(`/console/approvals/${id}/${asked.call_id}`);
  expect(await activity(page).getByText("awaiting approval").count()).toBe(1);
  await gateway.call("POST", `/v1/tasks/${id}/approvals/${asked.call_id}`, { body: { decision: "approve" } });
  await activity(page).getByText("Written.").waitFor();
  await activity(page).getByText("approved", { exact: true }).waitFor();
  await timeline(page).getByText("Approved by").waitFor();
});

test("a task is cancelled while it streams, after a confirmation, and its words are marked as no output", async () => {
  const { gateway, model } = stage;
  const work = held({ chunks: ["half a sent"] });
  model.script("small", work.script);
  const id = await dispatch(gateway, { agent: "helper", prompt: "stop me" });
  const { page } = await open(`/tasks/${id}`);
  await activity(page).getByText("half a sent").waitFor();
  await button(page, "Cancel …").press("Enter");
  await button(page, "Cancel").click();
  expect((await read(id)).status).toBe("running");
  await button(page, "Cancel …").click();
  await button(page, "Cancel the task").press("Enter");
  await page.getByText("cancelled", { exact: true }).first().waitFor();
  await activity(page).getByText("The text above is not its output").waitFor();
  expect((await read(id)).status).toBe("cancelled");
  await eventually(() => model.requests.at(-1)?.aborted === true);
  await timeline(page).getByText("Cancelled by").waitFor();
});

test("a failed task says why and what to do, and can be run again with the same fields", async () => {
  const { gateway, model } = stage;
  model.script("large", { status: 503 });
  const request = { agent: "helper", prompt: "try me", tier: 2, tools: ["time.now"], metadata: { a: "b" } };
  const id = await dispatch(gateway, request);
  await ended(gateway, id);
  const { page } = await open(`/tasks/${id}`);
  await page.getByRole("alert").getByText("agent's policy").waitFor();
  model.script("large", { chunks: ["better"] });
  await page.getByRole("link", { name: "Run again" }).click();
  await page.getByLabel("time.now").waitFor();
  await page.reload();
  await page.getByLabel("time.now").waitFor();
  expect(await field(page, "Prompt").inputValue()).toBe("try me");
  await button(page, "Run the task").click();
  await activity(page).getByText("better").waitFor();
  const [again] = (await gateway.call("GET", "/v1/tasks?limit=1")).body.data;
  expect(again).toMatchObject(request);
  expect(again.id).not.toBe(id);
});

test("an output is disregarded and overridden with a reason, and the ledger has the evidence", async () => {
  const { gateway, model } = stage;
  model.script("small", { chunks: ["wrong"] });
  const id = await dispatch(gateway, { agent: "helper", prompt: "answer" });
  await ended(gateway, id);
  const secret = await gateway.token({ scopes: ["admin"], person: "Grace" });
  const { page } = await open(`/tasks/${id}`, { secret });
  await button(page, "Override …").click();
  expect(await button(page, "Disregard the output").isDisabled()).toBe(true);
  await field(page, "Reason").fill(MARKUP);
  await button(page, "Disregard the output").click();
  await timeline(page).getByText("Output disregarded by Grace").waitFor();
  await button(page, "Override …").click();
  await field(page, "Decision").selectOption("override");
  await field(page, "What counts instead").fill("x".repeat(1_000_001));
  await field(page, "Reason").fill("it was wrong");
  await button(page, "Override the output").click();
  await page.getByRole("dialog").locator(".error").waitFor();
  expect(await field(page, "Reason").inputValue()).toBe("it was wrong");
  await field(page, "What counts instead").fill("right");
  await button(page, "Override the output").click();
  await timeline(page).getByText("Output overridden by Grace").waitFor();
  const actions = (await ledger(gateway)).filter((entry) => entry.task === id).map(({ action }) => action);
  expect(actions).toContain("oversight.disregard");
  expect(actions).toContain("oversight.override");
});

test("texts are erased permanently, and the page shows that they are gone", async () => {
  const { gateway } = stage;
  const id = await dispatch(gateway, { agent: "helper", prompt: "a secret question" });
  await ended(gateway, id);
  const { page } = await open(`/tasks/${id}`);
  await activity(page).getByText("wrong").waitFor();
  await button(page, "Erase content …").click();
  await button(page, "Erase for good").click();
  await page.getByText("It was erased").waitFor();
  await activity(page).getByText("was erased").waitFor();
  expect(await page.locator("main").textContent()).not.toContain("secret question");
  expect(await page.locator(".live-text").count()).toBe(0);
  expect(await read(id)).toMatchObject({ prompt: null, output: null });
  await timeline(page).getByText("Content erased").waitFor();
});

test("a task that does not exist is reported as missing", async () => {
  const { page } = await open("/tasks/task_none");
  await page.getByRole("alert").waitFor();
});

test("a timeline's axis keeps to one unit", async () => {
  const { gateway, model } = stage;
  const work = held({ chunks: ["done"] });
  model.script("small", work.script);
  const id = await dispatch(gateway, { agent: "helper", prompt: "take your time" });
  await work.asked;
  const { page } = await open(`/tasks/${id}`);
  await page.clock.install();
  await page.reload();
  await timeline(page).waitFor();
  await page.clock.fastForward("01:20");
  const axis = timeline(page).locator(".timeline-axis span");
  await axis.last().filter({ hasText: "min" }).waitFor();
  const units = (await axis.allTextContents()).slice(1).map((text) => text.split(" ").at(-1));
  expect(new Set(units)).toEqual(new Set(["min"]));
  work.open();
});

test("the creator of a task is named to readers who may list tokens; others see the end of an id", async () => {
  const { gateway } = stage;
  const scopes = ["tasks:read", "tasks:write"];
  const secret = await gateway.token({ name: "builder", scopes, person: "Ann Lee" });
  const other = await gateway.token({ name: "looker", scopes });
  const { body } = await gateway.call("POST", "/v1/tasks", {
    token: secret,
    body: { agent: "helper", prompt: "whose?" },
  });
  await ended(gateway, body.id);
  const { created_by: maker } = await read(body.id);
  const by = (page: Page) => page.getByTitle(maker, { exact: true });
  const { page: theirs, requests } = await open(`/tasks/${body.id}`, { secret: other });
  await by(theirs).waitFor();
  expect(await by(theirs).textContent()).toBe(`tok_…${maker.slice(-8)}`);
  expect(requests.filter((address) => address.includes("/v1/tokens"))).toEqual([]);
  const { page: own } = await open(`/tasks/${body.id}`, { secret });
  await by(own).getByText("you (Ann Lee)", { exact: true }).waitFor();
  const { page, requests: asked } = await open(`/tasks/${body.id}`);
  await by(page).getByText("builder (Ann Lee)", { exact: true }).waitFor();
  // Many rows, but a single read.
  await page.getByRole("link", { name: "Ledger", exact: true }).click();
  await by(page).getByText("builder (Ann Lee)", { exact: true }).first().waitFor();
  expect(asked.filter((address) => address.includes("/v1/tokens"))).toHaveLength(1);
});
