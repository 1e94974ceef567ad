/** The list of connectors and the page of one: its state, its tools, and real calls of them. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { becomes, eventually } from "../../support/browser.ts";
import { startFakeMcp } from "../../support/fake-mcp/http.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../../support/scripted-mcp.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
const MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>";
const TOOLS = [
  {
    name: "book",
    description: `Books a room. ${MARKUP}`,
    inputSchema: {
      type: "object",
      required: ["room", "seats"],
      additionalProperties: false,
      properties: {
        room: { type: "string", description: `Its name. ${MARKUP}` },
        seats: { type: "integer", minimum: 1, description: "How many." },
        price: { type: "number" },
        quiet: { type: "boolean" },
        floor: { enum: ["low", "high"] },
        guests: { type: "array", items: { type: "object", properties: { mail: { type: "string" } } } },
      },
    },
  },
  {
    name: "wipe",
    description: "Removes every booking.",
    inputSchema: { type: "object", additionalProperties: false },
    annotations: { destructiveHint: true },
  },
  { name: "any", inputSchema: { type: "object" } },
];
let stage: TestConsole;
let up: ScriptedMcp;

beforeAll(async () => {
  up = startScriptedMcp(TOOLS);
  stage = await openConsole();
});
afterAll(async () => {
  await stage.close();
  await up.close();
});

const rest = (method: string, path: string, body?: object) =>
  stage.gateway.call(method, path, body === undefined ? {} : { body });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const card = (page: Page, name: string) =>
  page.getByRole("region", { name: `Connector ${name}`, exact: true });
const field = (page: Page, name: string) => page.getByRole("form").getByLabel(name, { exact: true });

async function letIn(name: string, url: string, more: object = {}): Promise<void> {
  const body = { name, kind: "mcp", transport: { type: "http", url }, ...more };
  expect((await rest("POST", "/v1/connectors", body)).status).toBe(201);
}

test("a signed-out reader signs in first and stays at the address; an empty list shows the next step", async () => {
  const { page, complaints, context } = await stage.browser.page();
  await page.goto(stage.at("/connectors"));
  await button(page, "Sign in").waitFor();
  expect(await page.getByRole("heading", { name: "Connectors" }).count()).toBe(0);
  await stage.signIn(page);
  await page.getByRole("heading", { name: "No connectors have been added yet" }).waitFor();
  expect(page.url()).toBe(stage.at("/connectors"));
  await card(page, "vault").waitFor();
  await card(page, "time").getByText("Built in").waitFor();
  expect(await card(page, "time").getByRole("button").count()).toBe(0);
  await page.getByRole("link", { name: "Paste mcpServers JSON" }).click();
  await page.getByRole("textbox", { name: "Configuration" }).waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test("a token that may only read sees no action that would be refused", async () => {
  await letIn("readable", up.url);
  const secret = await stage.gateway.token({ name: "reader", scopes: ["connectors:read", "tools:time.*"] });
  const { page, context } = await stage.open("/connectors", { secret });
  await card(page, "readable").getByText("you need the scope connectors:write").waitFor();
  expect(await page.getByRole("link", { name: "Add a connector" }).count()).toBe(0);
  expect(await button(page, "Remove readable").count()).toBe(0);
  await page.goto(stage.at("/connectors/-/new"));
  await page.getByText("You may not add connectors").waitFor();
  await page.goto(stage.at("/connectors/readable"));
  await page.getByText("Your token may not call it.").waitFor();
  expect(await button(page, "Call it").count()).toBe(0);
  await page.goto(stage.at("/connectors/time?tool=now"));
  await button(page, "Call it").waitFor();
  await context.close();
});

test("a token that may not read connectors is told so, and none are requested", async () => {
  const secret = await stage.gateway.token({ name: "writer", scopes: ["connectors:write"] });
  const { page, requests, complaints, context } = await stage.open("/connectors", { secret });
  for (const path of ["/connectors", "/connectors/readable"]) {
    await page.goto(stage.at(path));
    await page.getByRole("heading", { name: "You may not read connectors" }).waitFor();
    await page.getByText("connectors:read").waitFor();
  }
  await page.goto(stage.at("/connectors/-/new?kind=paste"));
  await page.getByRole("textbox", { name: "Configuration" }).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  expect(requests.filter((address) => address.includes("/v1/connectors"))).toEqual([]);
  expect(complaints.filter((complaint) => !complaint.includes("401"))).toEqual([]);
  await context.close();
});

test("an unreachable connector says why and recovers on a refresh; changes from elsewhere show at once", async () => {
  const first = startFakeMcp();
  const { page, complaints, context } = await stage.open("/connectors");
  await page.getByRole("heading", { level: 1, name: "Connectors" }).waitFor();
  await letIn("flaky", first.url);
  await card(page, "flaky").getByText("ready", { exact: true }).waitFor();
  await first.close();
  expect((await rest("POST", "/v1/connectors/flaky/refresh")).body.status).toBe("unreachable");
  await card(page, "flaky").getByText("unreachable", { exact: true }).waitFor();
  await card(page, "flaky").getByText("cannot be reached").waitFor();
  await button(page, "Refresh flaky").click();
  await page.getByText("flaky could not be reached.").waitFor();
  const second = startFakeMcp({ port: first.port });
  // After a failure, refreshes are refused for a while.
  await eventually(async () => {
    const answered = page.waitForResponse((response) => response.url().endsWith("/flaky/refresh"));
    await button(page, "Refresh flaky").click();
    return (await (await answered).json()).status === "ready";
  });
  await card(page, "flaky").getByText("ready", { exact: true }).waitFor();
  expect(await card(page, "flaky").getByText("cannot be reached").count()).toBe(0);
  await second.close();
  expect(complaints).toEqual([]);
  await context.close();
});

test("a connector is removed only after a confirmation", async () => {
  const { page, context } = await stage.open("/connectors");
  await letIn("brief", up.url);
  await button(page, "Remove brief").click();
  await button(page, "Cancel").click();
  await card(page, "brief").waitFor();
  const names = async () =>
    (await rest("GET", "/v1/connectors")).body.data.map(({ name }: { name: string }) => name);
  expect(await names()).toContain("brief");
  await button(page, "Remove brief").click();
  await button(page, "Remove the connector").click();
  await card(page, "brief").waitFor({ state: "detached" });
  expect(await names()).not.toContain("brief");
  await context.close();
});

test("a tool is shown with its arguments, and its server receives the typed values with their types", async () => {
  await letIn("rooms", up.url);
  up.answer(() => ({
    content: [
      { type: "text", text: `done ${MARKUP}` },
      { type: "image", mimeType: "image/png", data: "AAAA" },
      { type: "resource_link", name: MARKUP, uri: "javascript:alert(3)" },
    ],
    structuredContent: { booked: MARKUP },
  }));
  const { page, complaints, context } = await stage.open("/connectors/rooms?tool=book");
  await page.getByRole("heading", { name: "rooms.book" }).waitFor();
  await page.getByText(`Books a room. ${MARKUP}`).last().waitFor();
  const row = page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: "seats" }) });
  expect(await row.textContent()).toMatch(/integer\s*yes\s*How many\.\s*1 at least/);
  await page.getByRole("rowheader", { name: "guests[].mail" }).waitFor();

  await field(page, "room (needed)").fill(MARKUP);
  await button(page, "Call it").click();
  await page.getByText("is required").waitFor();
  expect(up.calls).toEqual([]);
  await becomes(field(page, "seats (needed)"), ":focus");

  await field(page, "seats (needed)").fill("0");
  await button(page, "Call it").click();
  await page.getByRole("alert").waitFor();
  await becomes(field(page, "seats (needed)"), "[aria-invalid=true]");
  expect(await field(page, "room (needed)").inputValue()).toBe(MARKUP);
  expect(up.calls).toEqual([]);

  await field(page, "seats (needed)").fill("12");
  await field(page, "price").fill("9.5");
  await field(page, "quiet").selectOption("false");
  await field(page, "floor").selectOption({ label: "high" });
  await field(page, "guests").fill('[{"mail": "a@b.example"}]');
  await button(page, "Call it").click();
  const answer = page.getByRole("region", { name: "Answer" });
  await answer.getByText("succeeded").waitFor();
  const input = {
    room: MARKUP,
    seats: 12,
    price: 9.5,
    quiet: false,
    floor: "high",
    guests: [{ mail: "a@b.example" }],
  };
  expect(up.calls).toEqual([{ name: "book", input }]);
  await answer.getByText(`done ${MARKUP}`).waitFor();
  await answer.getByText("image/png, 3 bytes").waitFor();
  await answer.getByText("javascript:alert(3)").waitFor();
  expect(await answer.getByRole("link").allInnerTexts()).toEqual(["In the ledger"]);
  expect(await page.locator("main img, main script").count()).toBe(0);
  const { body: ledger } = await rest("GET", "/v1/ledger?action=tool.call&order=desc&limit=2");
  expect(ledger.data[0]).toMatchObject({ tool: "rooms.book", outcome: "succeeded", channel: "rest" });

  await button(page, "Edit as JSON").click();
  const json = field(page, "Arguments as JSON");
  expect(JSON.parse(await json.inputValue())).toEqual(input);
  await json.fill("[1]");
  await button(page, "Call it").click();
  await page.getByText("is not a JSON object").waitFor();
  expect(up.calls).toHaveLength(1);
  expect(complaints.filter((complaint) => !complaint.includes("422"))).toEqual([]);
  await context.close();
});

test("a destructive tool is called only after a confirmation, and a failing tool says why", async () => {
  await letIn("rooms_two", up.url);
  const before = up.calls.length;
  up.answer(() => ({ ...text("The calendar is locked."), isError: true }));
  const { page, context } = await stage.open("/connectors/rooms_two?tool=wipe");
  await page.getByText("It takes no arguments.").waitFor();
  await button(page, "Call it").click();
  await page.getByRole("dialog").getByText("marks this tool as destructive").waitFor();
  await button(page, "Cancel").click();
  expect(up.calls).toHaveLength(before);
  await button(page, "Call it").click();
  await page.getByRole("dialog").getByRole("button", { name: "Call it" }).click();
  const answer = page.getByRole("region", { name: "Answer" });
  await answer.getByText("The calendar is locked.").waitFor();
  await answer.getByText("failed", { exact: true }).waitFor();
  expect(up.calls).toHaveLength(before + 1);
  await context.close();
});

test("a call that takes too long can be cancelled", async () => {
  await letIn("rooms_three", up.url);
  const asked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<object>();
  up.answer(() => {
    asked.resolve();
    return held.promise;
  });
  const { page, context } = await stage.open("/connectors/rooms_three?tool=any");
  await field(page, "Arguments as JSON").fill('{"free": 1}');
  await button(page, "Call it").click();
  await asked.promise;
  expect(await button(page, "Waiting for the answer …").isDisabled()).toBe(true);
  await button(page, "Stop waiting").click();
  await page.getByText("The call was cancelled").waitFor();
  const outcome = async () =>
    (await rest("GET", "/v1/ledger?action=tool.call&order=desc&limit=1")).body.data[0];
  await eventually(async () => (await outcome()).outcome === "cancelled");
  held.resolve(text("too late"));
  await context.close();
});

test("a call that needs approval becomes a task, and the page links to it", async () => {
  await letIn("rooms_four", up.url);
  await stage.gateway.agent("clerk", { approvals: ["rooms_four.any"] });
  const secret = await stage.gateway.token({
    name: "clerk's",
    agent: "clerk",
    scopes: ["connectors:read", "tasks:read", "approvals:write", "tools:*"],
  });
  const { page, context } = await stage.open("/connectors/rooms_four?tool=any", { secret });
  await page.getByText("needs approval").waitFor();
  await button(page, "Call it").click();
  await page.getByText("The call is waiting for a person to approve it.").waitFor();
  await page.getByRole("link", { name: "Open the approval" }).waitFor();
  const [task] = (await rest("GET", "/v1/tasks?status=awaiting_approval")).body.data;
  const [asked] = (await rest("GET", "/v1/approvals")).body.data;
  const link = (name: string) => page.getByRole("link", { name }).getAttribute("href");
  expect(await link("Open the task")).toBe(`/console/tasks/${task.id}`);
  expect(await link("Open the approval")).toBe(`/console/approvals/${task.id}/${asked.call_id}`);
  await context.close();
});

test("a tool is found and called by keyboard", async () => {
  await letIn("keys", up.url);
  up.answer(({ name, input }) => text(`${name} ${JSON.stringify(input)}`));
  const { page, context } = await stage.open("/connectors/keys?tool=any");
  await field(page, "Arguments as JSON").focus();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type('{"by": "keys"}');
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText('any {"by":"keys"}').waitFor();
  await context.close();
});
