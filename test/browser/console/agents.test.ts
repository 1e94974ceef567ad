/** The agents of a workspace in the console: the list and the page of one agent. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { held, run } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
const MARKUP = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
});
afterAll(() => stage.close());

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const row = (page: Page, name: string) =>
  page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });

test("without agents, the list explains what an agent is and how to create the first one", async () => {
  const { page, complaints } = await stage.open("/agents");
  await page.getByRole("heading", { name: "There are no agents yet" }).waitFor();
  await page.getByRole("link", { name: "Create an agent" }).last().click();
  await page.getByRole("heading", { name: "Create an agent" }).waitFor();
  expect(page.url()).toBe(stage.at("/agents/-/new"));
  expect(complaints.filter((complaint) => !complaint.includes("401"))).toEqual([]);
});

test("a reader without the scope sees no agents, and one without the right to write sees no actions", async () => {
  await stage.gateway.agent("readable");
  const blind = await stage.gateway.token({ scopes: ["tasks:read"] });
  const none = await stage.open("/agents", { secret: blind });
  await none.page.getByText("agents:read").waitFor();
  await none.page.goto(stage.at("/agents/readable"));
  await none.page.getByText("agents:read").waitFor();
  expect(none.requests.filter((address) => address.includes("/v1/agents"))).toEqual([]);

  const reader = await stage.gateway.token({ scopes: ["agents:read"] });
  const { page, requests } = await stage.open("/agents/readable", { secret: reader });
  await page.getByRole("heading", { name: "Tiers and models" }).waitFor();
  await page.getByText("tasks:read").waitFor();
  await page.getByText("connectors:read").waitFor();
  for (const name of ["Stop", "Archive …", "Save changes"]) expect(await button(page, name).count()).toBe(0);
  for (const name of ["Run a task", "Search the vault as this agent", "Its ledger", "Edit"]) {
    expect(await page.getByRole("link", { name, exact: true }).count()).toBe(0);
  }
  expect(requests.filter((address) => /\/v1\/(tasks|connectors)/.test(address))).toEqual([]);
  await page.goto(stage.at("/agents/readable?tab=edit"));
  await page.getByText("agents:write").waitFor();
  await page.goto(stage.at("/agents/-/new"));
  await page.getByText("agents:write").waitFor();
  expect(await page.getByRole("form").count()).toBe(0);
});

test("a token that acts as an agent cannot change agents", async () => {
  const scopes = ["agents:read", "agents:write", "approvals:write"];
  const secret = await stage.gateway.token({ agent: "readable", scopes });
  const { page } = await stage.open("/agents/readable", { secret });
  await page.getByRole("heading", { name: "Tiers and models" }).waitFor();
  for (const name of ["Stop", "Archive …"]) expect(await button(page, name).count()).toBe(0);
  await page.goto(stage.at("/agents/readable?tab=edit"));
  await page.getByText("You are signed in as the agent readable").waitFor();
});

test("the list follows agents that are created, changed, stopped and archived elsewhere", async () => {
  const { gateway } = stage;
  await gateway.agent("live", { owner: "Ada" });
  const { page } = await stage.open("/agents");
  await row(page, "live").getByText("Ada").waitFor();
  await gateway.agent("newcomer", { owner: "Grace" });
  await row(page, "newcomer").getByText("Grace").waitFor();
  await gateway.call("PATCH", "/v1/agents/live", { body: { owner: "Linus" } });
  await row(page, "live").getByText("Linus").waitFor();
  await gateway.call("POST", "/v1/agents/live/stop");
  await row(page, "live").getByText("stopped").waitFor();
  await gateway.call("DELETE", "/v1/agents/newcomer");
  await row(page, "newcomer").waitFor({ state: "detached" });
  await gateway.call("POST", "/v1/workspace/stop");
  await row(page, "readable").getByText("stopped").waitFor();
  await gateway.call("POST", "/v1/workspace/resume");
  await row(page, "readable").getByText("active").waitFor();
});

test("a search looks at names and owners, and is kept in the address", async () => {
  await stage.gateway.agent("findable", { owner: "Night shift" });
  const { page } = await stage.open("/agents");
  await page.getByLabel("Name or owner").fill("night FIND");
  await row(page, "readable").waitFor({ state: "detached" });
  await page.reload();
  await row(page, "findable").waitFor();
  expect(await page.getByLabel("Name or owner").inputValue()).toBe("night FIND");
  await page.getByLabel("Name or owner").fill("nobody at all");
  await button(page, "Show all agents").click();
  await row(page, "readable").waitFor();
  expect(page.url()).toBe(stage.at("/agents"));
});

test("an agent's address asks a signed-out reader to sign in, and then shows the agent", async () => {
  await stage.gateway.agent("addressed", { description: "Has an address" });
  const { page } = await stage.browser.page();
  await page.goto(stage.at("/agents/addressed"));
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await stage.signIn(page);
  await page.getByRole("heading", { level: 1, name: "addressed" }).waitFor();
  await page.getByText("Has an address").waitFor();
  for (const [name, href] of [
    ["Run a task", "/console/tasks?new=addressed"],
    ["Search the vault as this agent", "/console/vault?agent=addressed"],
    ["Its ledger", "/console/ledger?agent=addressed"],
    ["All its tasks", "/console/tasks?agent=addressed"],
  ] as const) {
    expect(await page.getByRole("link", { name, exact: true }).getAttribute("href")).toBe(href);
  }
  await page.goto(stage.at("/agents/nobody"));
  await page.getByRole("heading", { name: "There is no agent with this name" }).waitFor();
});

test("an agent's tasks appear and end live, and another agent's tasks cause no request", async () => {
  const { gateway, model } = stage;
  await gateway.agent("worker");
  const { page, requests } = await stage.open("/agents/worker");
  await page.getByText("No tasks yet").waitFor();
  const { script, asked, open } = held();
  model.script("small", script);
  await gateway.call("POST", "/v1/tasks", { body: { agent: "worker", prompt: `Say ${MARKUP}` } });
  await asked;
  const task = page.getByRole("listitem").filter({ hasText: "Say <img" });
  await task.getByText("running").waitFor();
  open();
  await task.getByText("succeeded").waitFor();
  const reads = () => requests.filter((address) => address.includes("/v1/tasks?")).length;
  // The page reads the second change 1.5 seconds after the first; anything it had postponed until then has been read
  // too.
  const settle = async (steps: number) => {
    for (const max_steps of [steps, steps + 1]) {
      await gateway.call("PATCH", "/v1/agents/worker", { body: { max_steps } });
      await page.getByText(`${max_steps} at most`).waitFor();
    }
  };
  await settle(30);
  const before = reads();
  await run(gateway, { agent: "readable" });
  await settle(40);
  expect(reads()).toBe(before);
});

test("many new tasks of a busy agent are read with one request", async () => {
  const { gateway } = stage;
  await gateway.agent("busy");
  const { page, requests, close } = await stage.open("/agents/busy");
  await page.getByText("No tasks yet").waitFor();
  await page.clock.install();
  const reads = () => requests.filter((address) => address.includes("/v1/tasks?")).length;
  const before = reads();
  await run(gateway, { agent: "busy", prompt: "number 1" });
  await page.getByText("number 1", { exact: true }).waitFor();
  for (const number of [2, 3, 4]) {
    await run(gateway, { agent: "busy", prompt: `number ${number}` });
    await page.clock.runFor(2_000);
  }
  expect(reads()).toBe(before + 1);
  await page.clock.runFor(10_000);
  await page.getByText("number 4", { exact: true }).waitFor();
  expect(reads()).toBe(before + 2);
  await close();
});
