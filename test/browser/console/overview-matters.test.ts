/** The console's first page: what needs a person's attention, as it appears and disappears. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { dispatch, run, until } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
const MARKUP = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

let stage: TestConsole;
let ada: string;
beforeAll(async () => {
  stage = await openConsole();
  await stage.gateway.agent("helper", { approvals: [] });
  ada = await stage.gateway.token({ scopes: ["admin"], person: "Ada" });
});
afterAll(() => stage.close());

const card = (page: Page, name: string) =>
  page.locator("section").filter({ has: page.getByRole("heading", { name, exact: true }) });
const figure = (page: Page, name: string) =>
  page.getByRole("region", { name: "Now" }).locator(".figure").filter({ hasText: name });
const needs = (page: Page) => card(page, "Needs attention");
const call = (method: string, path: string, body?: object, token?: string) =>
  stage.gateway.call(method, path, { ...(body ? { body } : {}), ...(token ? { token } : {}) });
const unexpected = (complaints: readonly string[]) => complaints.filter((one) => !one.includes("401"));

test("a stopped agent is listed until it is resumed, without a reload", async () => {
  const { page } = await stage.open();
  await needs(page).getByText("Nothing needs attention.").waitFor();
  await call("POST", "/v1/agents/helper/stop");
  const matter = needs(page).getByRole("link", { name: "Agent helper is stopped" });
  await matter.waitFor();
  await call("POST", "/v1/agents/helper/resume");
  await matter.waitFor({ state: "detached" });
  await call("POST", "/v1/workspace/stop");
  await needs(page).getByText("The workspace is stopped").waitFor();
  await call("POST", "/v1/workspace/resume");
  await needs(page).getByText("Nothing needs attention.").waitFor();
});

test("a pending call is counted and listed, and its decision is shown as recorded", async () => {
  const { gateway, model } = stage;
  await gateway.agent("asker", { approvals: ["*"] });
  model.script("small", (_request, index) =>
    index === 0 ? { toolCalls: [{ name: "time__now", arguments: {} }] } : { chunks: ["well then"] },
  );
  const { page, complaints } = await stage.open();
  const id = await dispatch(gateway, { agent: "asker", prompt: MARKUP, tools: ["time.now"] });
  await needs(page).getByRole("link", { name: "1 call waits for a person" }).waitFor();
  await needs(page).getByText("the oldest for").waitFor();
  await figure(page, "Waiting for approval").getByText("1", { exact: true }).waitFor();
  await card(page, "Recent tasks").getByText("awaiting approval").waitFor();
  const [{ call_id }] = (await call("GET", "/v1/approvals")).body.data;
  await call("POST", `/v1/tasks/${id}/approvals/${call_id}`, { decision: "deny", reason: MARKUP }, ada);
  await card(page, "Recent decisions").getByText(MARKUP).waitFor();
  await card(page, "Recent decisions").getByText("Ada").waitFor();
  await needs(page).getByText("Nothing needs attention.").waitFor();
  await figure(page, "Waiting for approval").getByText("0", { exact: true }).waitFor();
  await page.reload();
  await card(page, "Recent tasks").getByText(MARKUP).waitFor();
  expect(await page.locator("main img, main script").count()).toBe(0);
  expect(unexpected(complaints)).toEqual([]);
});

test("failed tasks are listed by their error, with what to do", async () => {
  const { gateway, model } = stage;
  const { page } = await stage.open();
  await needs(page).getByText("Nothing needs attention.").waitFor();
  for (const name of ["small", "spare"]) model.script(name, { status: 500 });
  const failed = await run(gateway, { agent: "helper" });
  expect(failed.error.code).toBe("model_unavailable");
  const one = needs(page).getByRole("link", { name: "1 task has failed in the last hour" });
  await one.waitFor();
  expect(await one.getAttribute("href")).toBe(`/console/tasks/${failed.id}`);
  await needs(page).getByText("Check the provider's key and address").waitFor();
  await run(gateway, { agent: "helper" });
  await needs(page).getByRole("link", { name: "2 tasks have failed in the last hour" }).waitFor();
  await page.reload();
  await needs(page).getByRole("link", { name: "2 tasks have failed in the last hour" }).waitFor();
});

test("an unreachable connector is listed with its error until it is removed", async () => {
  const { page } = await stage.open();
  const transport = { type: "http", url: "http://127.0.0.1:9/mcp" };
  await call("POST", "/v1/connectors", { name: "far", kind: "mcp", transport });
  const matter = needs(page).getByRole("link", { name: "Connector far cannot be reached" });
  await matter.waitFor();
  expect(await matter.getAttribute("href")).toBe("/console/connectors/far");
  await call("DELETE", "/v1/connectors/far");
  await matter.waitFor({ state: "detached" });
});

test("budgets that run out and exceeded limits are listed as they occur", async () => {
  const { gateway, model } = stage;
  model.script("large", { chunks: ["x"], usage: { prompt_tokens: 9_000, completion_tokens: 0 } });
  await gateway.agent("spender", { budget: { credits_per_day: 10 } });
  await call("PATCH", "/v1/workspace", { budget: { credits_per_month: 100 } });
  const { page } = await stage.open();
  await figure(page, "Credits this month").getByText("of 100").waitFor();
  await run(gateway, { agent: "spender", tier: 2 });
  await needs(page).getByText("Agent spender has spent 80% of today's budget").waitFor();
  await call("PATCH", "/v1/workspace", { budget: { credits_per_month: 10 } });
  await needs(page).getByText("This month's budget is 90% spent").waitFor();
  // Nine, plus the small cost of the earlier tasks.
  await figure(page, "Credits this month")
    .getByText(/^9(\.\d+)?$/)
    .waitFor();
  await call("PATCH", "/v1/workspace", { budget: { credits_per_month: null } });
  await needs(page).getByText("This month's budget").waitFor({ state: "detached" });
  await figure(page, "Credits this month").getByText("no budget set").waitFor();

  await call("PATCH", "/v1/workspace", { limits: { requests_per_minute: 1 } });
  await until(async () => (await call("GET", "/v1/agents")).headers.has("gatehouse-limit-exceeded"));
  await needs(page).getByText("The limit of requests was exceeded").waitFor();
  await needs(page).getByText("everything was served").waitFor();
  await call("PATCH", "/v1/workspace", { limits: { requests_per_minute: 1_000_000 } });
});

test("a budget that was spent yesterday is not listed today, on a page that was open all night", async () => {
  const { gateway, model } = stage;
  model.script("large", { chunks: ["x"], usage: { prompt_tokens: 9_000, completion_tokens: 0 } });
  await gateway.agent("nightly", { budget: { credits_per_day: 10 } });
  const { page } = await stage.open();
  await page.clock.install();
  await page.reload();
  await run(gateway, { agent: "nightly", tier: 2 });
  const spent = needs(page).getByText("Agent nightly has spent 80% of today's budget");
  await spent.waitFor();
  await page.clock.fastForward("24:00:00");
  await spent.waitFor({ state: "detached" });
});

test("no count is shown if more tasks have failed than fit on one page of the list", async () => {
  const { gateway, model } = stage;
  for (const name of ["small", "spare"]) model.script(name, { status: 500 });
  await Promise.all(Array.from({ length: 52 }, () => run(gateway, { agent: "helper" })));
  const { page } = await stage.open();
  await needs(page).getByRole("link", { name: "50 or more tasks have failed in the last hour" }).waitFor();
});
