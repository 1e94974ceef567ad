/** The console's first page: the current state, updated without a reload. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { silentLog } from "../../../src/base/log.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { type Gateway, openGateway } from "../../../src/gateway.ts";
import { dispatch, ended, run } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);

const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-overview-"));
let stage: TestConsole;
let second: Gateway | null = null;
beforeAll(async () => {
  stage = await openConsole({ dataDir, more: "drain_seconds: 0" });
});
afterAll(async () => {
  await stage.browser.close();
  // The test stops the first gateway, if it gets that far.
  await (second ?? stage.gateway).stop();
  await stage.model.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const card = (page: Page, name: string) =>
  page.locator("section").filter({ has: page.getByRole("heading", { name, exact: true }) });
const figure = (page: Page, name: string) =>
  page.getByRole("region", { name: "Now" }).locator(".figure").filter({ hasText: name });
const needs = (page: Page) => card(page, "Needs attention");
const call = (method: string, path: string, body?: object) =>
  stage.gateway.call(method, path, body ? { body } : {});
const unexpected = (complaints: readonly string[]) => complaints.filter((one) => !one.includes("401"));

test("a signed-out reader signs in first, and then sees the page at the requested address", async () => {
  const { page, requests, complaints } = await stage.browser.page();
  await page.goto(stage.at("?range=7d"));
  await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  expect(requests.filter((address) => address.includes("/v1/"))).toEqual([]);
  await stage.signIn(page);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  expect(page.url()).toBe(stage.at("?range=7d"));
  expect(unexpected(complaints)).toEqual([]);
});

test("an empty workspace shows three steps, and each is ticked once anybody has done it", async () => {
  const { page } = await stage.open();
  const step = (name: string) => page.getByRole("heading", { level: 3, name });
  for (const name of ["Create an agent", "Run a task", "Connect a tool"]) {
    await step(name).getByText("to do").waitFor({ state: "attached" });
  }
  await needs(page).getByText("Nothing needs attention.").waitFor();
  await stage.gateway.agent("helper", { approvals: [] });
  await step("Create an agent").getByText("done").waitFor({ state: "attached" });
  const document = { title: "Terms", text: "Fourteen days.", scope: "support" };
  expect((await call("POST", "/v1/vault/documents", document)).status).toBe(201);
  await step("Connect a tool").getByText("done").waitFor({ state: "attached" });
  expect(await step("Run a task").getByText("to do").count()).toBe(1);
  await run(stage.gateway, { agent: "helper", prompt: "the first of all tasks" });
  await card(page, "Recent tasks").getByText("succeeded").waitFor();
  expect(await page.getByRole("heading", { name: "First steps" }).count()).toBe(0);
  await page.getByRole("heading", { name: "Credits by model" }).waitFor();
});

test("a reader without a scope does not see what the server would refuse, and the page does not request it", async () => {
  const secret = await stage.gateway.token({ scopes: ["tasks:read"] });
  const { page, requests, complaints } = await stage.open("", { secret });
  await card(page, "Recent tasks").getByText("the first of all tasks").waitFor();
  // The page makes no claim about what it cannot know.
  await needs(page).getByText("Nothing that you may see needs attention.").waitFor();
  await needs(page).getByText("calls waiting for approval: approvals:write").waitFor();
  await needs(page).getByText("connectors that cannot be reached: connectors:read").waitFor();
  expect(await needs(page).getByText("failed tasks").count()).toBe(0);
  expect(await needs(page).getByText("Nothing needs attention.").count()).toBe(0);
  for (const name of ["Waiting for approval", "Credits this month", "Ledger entries"]) {
    expect(await figure(page, name).count()).toBe(0);
  }
  expect(await page.getByRole("heading", { name: "Over time" }).count()).toBe(0);
  expect(await page.getByRole("heading", { name: "Recent decisions" }).count()).toBe(0);
  const paths = requests
    .map((address) => new URL(address).pathname)
    .filter((path) => path.startsWith("/v1/"));
  expect([...new Set(paths)].sort()).toEqual(["/v1/events", "/v1/session", "/v1/tasks"]);
  expect(unexpected(complaints)).toEqual([]);
});

test("a lost server is announced, and what happened in the meantime shows without a reload", async () => {
  const { gateway } = stage;
  const { page } = await stage.open();
  await figure(page, "Connection").getByText("Live", { exact: true }).waitFor();
  await gateway.stop();
  await figure(page, "Connection").getByText("Lost").waitFor();
  const { config } = loadConfig({
    flags: { data: dataDir, listen: new URL(gateway.url).host },
    env: { GATEHOUSE_ADMIN_TOKEN: gateway.admin },
    cwd: dataDir,
  });
  second = await openGateway(config, { log: silentLog, handOverAdmin: () => {} });
  await second.start();
  await call("POST", "/v1/agents/helper/stop");
  await figure(page, "Connection").getByText("Live", { exact: true }).waitFor();
  await needs(page).getByText("Agent helper is stopped").waitFor();
  await call("POST", "/v1/agents/helper/resume");
  const id = await dispatch(gateway, { agent: "helper", prompt: "after the restart" });
  await ended(gateway, id);
  await card(page, "Recent tasks").locator(`a[href="/console/tasks/${id}"]`).waitFor();
});
