/** Adding connectors: each form, a pasted configuration, refusals, and that no trace of a secret remains. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { silentLog } from "../../../src/base/log.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { type Gateway, openGateway } from "../../../src/gateway.ts";
import { type FakeApi, startApi } from "../../connectors/openapi/api.ts";
import { becomes } from "../../support/browser.ts";
import { type FakeMcp, startFakeMcp } from "../../support/fake-mcp/http.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
const PROGRAM = join(import.meta.dir, "..", "..", "support", "fake-mcp", "stdio.ts");
const SECRET = "hunter22-long";
const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-connectors-new-"));
let stage: TestConsole;
let up: FakeMcp;
let api: FakeApi;
/** Replaces the stage's own gateway once that one has been stopped. */
let second: Gateway | undefined;

beforeAll(async () => {
  up = startFakeMcp();
  api = startApi();
  stage = await openConsole({ dataDir });
});
afterAll(async () => {
  if (second) {
    await second.stop();
    await stage.browser.close();
    await stage.model.close();
  } else {
    await stage.close();
  }
  await up.close();
  await api.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const field = (page: Page, name: string) => page.getByLabel(name, { exact: true });

async function connector(name: string) {
  const { body } = await stage.gateway.call("GET", "/v1/connectors");
  return body.data.find((one: { name: string }) => one.name === name);
}

const document = () =>
  JSON.stringify({
    openapi: "3.1.0",
    info: { title: "Pets", version: "1" },
    servers: [{ url: api.url }],
    paths: { "/pets": { get: { operationId: "listPets", responses: { 200: { description: "pets" } } } } },
  });

test("a program is added with its arguments and variables, whose values are hidden and not kept in the page", async () => {
  const { page, complaints, context } = await stage.open("/connectors/-/new");
  await field(page, "Name").fill("local");
  await field(page, "Scopes").fill("echo, env\nfail");
  await field(page, "Command").fill(process.execPath);
  await field(page, "Arguments").fill(`${PROGRAM}\nplain\n{"list": "plain"}\n`);
  await field(page, "Variable 1: name").focus();
  await page.evaluate(`(() => {
    const data = new DataTransfer();
    data.setData("text", "SECRET=${SECRET}\\nexport OTHER='a b'\\n");
    document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  })()`);
  expect(await field(page, "Variable 2: name").inputValue()).toBe("OTHER");
  const value = page.getByRole("group", { name: "Environment" }).locator("input").nth(1);
  expect(await value.getAttribute("type")).toBe("password");
  await button(page, "Show Variable 1: value").click();
  expect(await value.getAttribute("type")).toBe("text");
  expect(await value.inputValue()).toBe(SECRET);
  await button(page, "Add the connector").click();
  await page.getByRole("heading", { level: 1, name: "local" }).waitFor();
  expect(page.url()).toBe(stage.at("/connectors/local"));
  const made = await connector("local");
  expect(made).toMatchObject({ status: "ready", scopes: ["echo", "env", "fail"] });
  expect(made.tools.map(({ name }: { name: string }) => name)).toEqual([
    "local.echo",
    "local.env",
    "local.fail",
  ]);
  const { body } = await stage.gateway.call("POST", "/v1/tools/local.env/call");
  expect(body.content[0].text).toContain('"OTHER":"a b"');
  expect(
    await page.evaluate<string>("JSON.stringify([localStorage, sessionStorage, history.state])"),
  ).not.toContain(SECRET);
  await page.goBack();
  await page.getByRole("form", { name: "Add a program" }).waitFor();
  const typed = `[...document.querySelectorAll("main input, main textarea")].map(({ value }) => value).join("")`;
  expect(await page.evaluate<string>(typed)).toBe("");
  expect(complaints).toEqual([]);
  await context.close();
});

test("a server is added with its headers; a refusal is shown at its field, and the input is kept", async () => {
  const { page, context } = await stage.open("/connectors/-/new?kind=server");
  await field(page, "Name").fill("Not A Name");
  await field(page, "URL").fill("ftp://example.org");
  await field(page, "Header 1: name").fill("bad header");
  await field(page, "Header 1: value").fill("x");
  await button(page, "Add the connector").click();
  await page.getByText("needs lower-case letters").waitFor();
  await becomes(field(page, "Name"), ":focus");
  await field(page, "Name").fill("remote");
  await button(page, "Add the connector").click();
  await page.getByRole("alert").waitFor();
  await becomes(field(page, "Header 1: name"), "[aria-invalid=true]");
  expect(await field(page, "Header 1: value").inputValue()).toBe("x");
  await field(page, "Header 1: name").fill("X-Key");
  await button(page, "Add the connector").click();
  await page.getByRole("alert").getByText("/transport/url", { exact: true }).waitFor();
  await becomes(field(page, "URL"), "[aria-invalid=true]");
  expect(await connector("remote")).toBeUndefined();
  await field(page, "URL").fill(up.sseUrl);
  await field(page, "Transport").selectOption("sse");
  await button(page, "Add the connector").click();
  await page.getByRole("heading", { level: 1, name: "remote" }).waitFor();
  expect(await connector("remote")).toMatchObject({ status: "ready" });
  expect(up.lastHeaders()).toMatchObject({ "x-key": "x" });
  await context.close();
});

test("an API is added by its document, as text and as a dropped file, with its authentication", async () => {
  const { page, complaints, context } = await stage.open("/connectors/-/new?kind=openapi");
  await field(page, "Name").fill("pets");
  await page.getByLabel("As text").check();
  await field(page, "The document, as JSON or YAML").fill("{}");
  await button(page, "Add the connector").click();
  await page.getByRole("alert").waitFor();
  await becomes(field(page, "The document, as JSON or YAML"), "[aria-invalid=true]");
  await field(page, "The document, as JSON or YAML").fill(document());
  await field(page, "Authentication").selectOption("bearer");
  const token = page.getByRole("form").locator('input[type="password"]');
  await token.fill(SECRET);
  await button(page, "Add the connector").click();
  await page.getByRole("heading", { name: "pets.listPets" }).waitFor();
  await button(page, "Call it").click();
  await page.getByRole("region", { name: "Answer" }).getByText("succeeded").waitFor();
  expect(api.asked.at(-1)).toMatchObject({ path: "/pets", headers: { authorization: `Bearer ${SECRET}` } });

  await page.goto(stage.at("/connectors/-/new?kind=openapi"));
  await field(page, "Name").fill("dropped");
  await page.evaluate(`(() => {
    const data = new DataTransfer();
    data.items.add(new File([${JSON.stringify(document())}], "pets.json"));
    document.querySelector(".document").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  })()`);
  await page.getByText("pets.json, ").waitFor();
  await button(page, "Add the connector").click();
  await page.getByRole("heading", { name: "dropped.listPets" }).waitFor();
  expect(await connector("dropped")).toMatchObject({ kind: "openapi", status: "ready" });
  expect(complaints.filter((complaint) => !complaint.includes("422"))).toEqual([]);
  await context.close();
});

test("a pasted configuration is first shown as filled-in forms, and each server is added with its own result", async () => {
  const markup = "<img src=x onerror=alert(1)>";
  const { page, complaints, context } = await stage.open("/connectors/-/new?kind=paste");
  const text = page.getByRole("textbox", { name: "Configuration" });
  await text.fill('{"mcpServers": {');
  await button(page, "Review").click();
  await page.getByText("That is not JSON").waitFor();
  expect(await text.inputValue()).toBe('{"mcpServers": {');
  const servers = {
    [markup]: { command: process.execPath, args: [PROGRAM], env: { SECRET: "<your secret>" }, [markup]: 1 },
    far: { url: up.url, headers: { Authorization: `Bearer ${SECRET}` } },
    nowhere: { type: "http", url: "http://127.0.0.1:9/mcp" },
    wrong: { command: "x", args: 7.5, env: [] },
  };
  await text.fill(JSON.stringify({ mcpServers: servers }));
  await button(page, "Review").click();
  await page.getByRole("heading", { name: "3 servers found" }).waitFor();
  await page.getByText("wrong: its args are not a list of strings.").waitFor();
  expect(await page.locator("main").textContent()).not.toContain(SECRET);
  expect(await page.locator("main img").count()).toBe(0);
  expect(await connector("far")).toBeUndefined();

  const open = page.getByRole("form", { name: `Server ${markup}` });
  await open.getByText("Fill in: <your secret>").waitFor();
  await button(page, "Add 2 servers with nothing left to fill in").click();
  await page.getByRole("region", { name: "Server far" }).getByText("Added, with 16 tools.").waitFor();
  const nowhere = page.getByRole("region", { name: "Server nowhere" });
  await nowhere.getByText("unreachable").waitFor();
  await nowhere.getByText("cannot be reached").waitFor();
  expect(await connector("far")).toMatchObject({ status: "ready" });

  await open.getByLabel("Name", { exact: true }).fill("far");
  await open.getByLabel("Variable 1: value", { exact: true }).fill(SECRET);
  await button(page, "Add it").click();
  await open.getByText("is taken").waitFor();
  await open.getByLabel("Name", { exact: true }).fill("near");
  await button(page, "Add it").click();
  await page.getByRole("link", { name: "near", exact: true }).waitFor();
  expect(await connector("near")).toMatchObject({ status: "ready" });
  expect(await page.locator("input").count()).toBe(0);
  expect(complaints.filter((complaint) => !complaint.includes("409"))).toEqual([]);
  await context.close();
});

test("any form with input, and pasted servers, are discarded only after confirmation", async () => {
  const { page, context } = await stage.open("/connectors/-/new");
  const kinds = [
    ["program", "Arguments", "--port 7"],
    ["server", "Header 1: value", "half-typed"],
    ["openapi", "Base URL", "https://example.org"],
    ["paste", "Configuration", '{"mcpServers": {"far": {"url": "https://example.org/mcp"}}}'],
  ] as const;
  const ask = page.getByRole("dialog", { name: "Leave without saving?" });
  const all = page.getByRole("link", { name: "All connectors" });
  for (const [kind, label, typed] of kinds) {
    const address = stage.at(`/connectors/-/new?kind=${kind}`);
    await page.goto(address);
    await field(page, label).fill(typed);
    await all.click();
    await button(page, "Keep editing").click();
    await ask.waitFor({ state: "detached" });
    expect(await field(page, label).inputValue()).toBe(typed);
    expect(page.url()).toBe(address);
  }
  await button(page, "Review").click();
  await page.getByRole("heading", { name: "1 server found" }).waitFor();
  await all.click();
  await button(page, "Leave without saving").click();
  await page.getByRole("heading", { level: 1, name: "Connectors" }).waitFor();
  await context.close();
});

test("input survives a lost server, and is added once the server is back", async () => {
  const { page, context } = await stage.open("/connectors/-/new?kind=server");
  await page.getByText("Live", { exact: true }).waitFor();
  await field(page, "Name").fill("patient");
  await field(page, "URL").fill(up.url);
  const { gateway } = stage;
  await gateway.stop();
  await button(page, "Add the connector").click();
  await page.getByText("The server does not answer.").waitFor();
  await page.getByText("No connection. Trying again …").waitFor();
  const { config } = loadConfig({
    flags: { data: dataDir, listen: new URL(gateway.url).host },
    env: { GATEHOUSE_ADMIN_TOKEN: gateway.admin },
    cwd: dataDir,
  });
  second = await openGateway(config, { log: silentLog, handOverAdmin: () => {} });
  await second.start();
  await page.getByText("Live", { exact: true }).waitFor();
  await button(page, "Add the connector").click();
  await page.getByRole("heading", { level: 1, name: "patient" }).waitFor();
  expect(await connector("patient")).toMatchObject({ status: "ready" });
  await context.close();
});
