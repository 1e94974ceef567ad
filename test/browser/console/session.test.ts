import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../../support/browser.ts";
import { openConsole, type TestConsole } from "./support.ts";

/** Signing in, by token and by link, and the frame of every page: the stop button, signing out, the connection. */
setDefaultTimeout(60_000);
let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
});
afterAll(() => stage.close());
beforeEach(() => resume());

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name, exact: true });

async function resume(token?: string): Promise<void> {
  await stage.gateway.call("POST", "/v1/workspace/resume", token === undefined ? {} : { token });
}

/** The secret of a new one-time link, which `gatehouse console` prints. */
async function link(): Promise<string> {
  const { gateway } = stage;
  const made = await gateway.call("POST", "/operator/console-links", {
    token: gateway.gateway.operatorSecret,
    headers: { "gatehouse-operator": "ada" },
  });
  expect(made.status).toBe(201);
  return /#link=(\w+)$/.exec(made.body.url)?.[1] ?? "";
}

async function tokenId(name: string): Promise<string> {
  const { body } = await stage.gateway.call("GET", "/v1/tokens?limit=200");
  return body.data.find((token: { name: string }) => token.name === name).id;
}

test("an invalid token is refused with an explanation, and a valid one signs in at the requested address", async () => {
  const { page, close } = await stage.browser.page();
  await page.goto(stage.at("/agents?q=x"));
  await page.getByLabel("Token", { exact: true }).fill("gth_nothing");
  await button(page, "Sign in").click();
  await page
    .getByRole("alert")
    .getByText(/is unknown/)
    .waitFor();
  await stage.signIn(page);
  await heading(page, "Agents").waitFor();
  expect(page.url()).toBe(stage.at("/agents?q=x"));
  await close();
});

test("a sign-in link works once, and leaves its secret neither in the address nor in the history", async () => {
  const secret = await link();
  const { page, close } = await stage.browser.page();
  await page.goto(`${stage.at()}#link=${secret}`);
  await heading(page, "Overview").waitFor();
  expect(page.url()).toBe(stage.at());
  await close();

  const other = await stage.browser.page();
  await other.page.goto(`${stage.at()}#link=${secret}`);
  await other.page
    .getByRole("alert")
    .getByText(/A link works once/)
    .waitFor();
  expect(other.page.url()).toBe(stage.at());
  await other.close();
});

test("a signed-in reader is asked before a link signs them in as somebody else", async () => {
  const ada = await stage.gateway.token({ name: "ada's", scopes: ["tasks:read"], person: "Ada" });
  const { page, close } = await stage.open("", { secret: ada });
  const secret = await link();
  await page.goto(`${stage.at()}#link=${secret}`);
  const dialog = page.getByRole("dialog", { name: "Sign in with the link?" });
  await dialog.getByText(/You are signed in as Ada/).waitFor();
  expect(page.url()).not.toContain(secret);
  await button(page, "Stay as I am").click();
  await dialog.waitFor({ state: "detached" });

  await page.evaluate(`location.hash = ${JSON.stringify(`link=${secret}`)}`);
  await button(page, "Sign in with the link").click();
  await page.getByRole("link", { name: "Ledger", exact: true }).waitFor();
  expect(page.url()).not.toContain(secret);
  await close();
});

test("a session that ends keeps the input, but only for the same token", async () => {
  const { gateway } = stage;
  const mine = await gateway.token({ name: "mine", scopes: ["agents:read", "agents:write"] });
  const { page, close } = await stage.open("/agents/-/new", { secret: mine });
  await page.getByLabel("Name", { exact: true }).fill("half-typed");
  const sessions = await gateway.call("GET", "/v1/sessions?limit=200");
  const id = await tokenId("mine");
  const { id: session } = sessions.body.data.find(({ token }: { token: string }) => token === id);
  expect((await gateway.call("DELETE", `/v1/sessions/${session}`)).status).toBe(204);
  await page.getByRole("heading", { name: "Sign in again" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.getByLabel("Token", { exact: true }).fill(mine);
  await button(page, "Sign in").click();
  await page.getByRole("heading", { name: "Sign in again" }).waitFor({ state: "detached" });
  expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("half-typed");
  await close();
});

test("everything is stopped and resumed from any page after a confirmation, and every other page shows it", async () => {
  const { gateway } = stage;
  const one = await stage.open("/vault");
  const other = await stage.open("/ledger");
  await button(one.page, "Stop all").click();
  await button(one.page, "Cancel").click();
  expect((await gateway.call("GET", "/v1/workspace")).body.status).toBe("active");
  await button(one.page, "Stop all").click();
  await button(one.page, "Stop all agents").click();
  await other.page.getByText("The workspace is stopped.", { exact: true }).waitFor();
  expect((await gateway.call("GET", "/v1/workspace")).body.status).toBe("stopped");
  await button(other.page, "Resume").click();
  await button(other.page, "Resume the workspace").click();
  await button(one.page, "Stop all").waitFor();
  expect((await gateway.call("GET", "/v1/workspace")).body.status).toBe("active");
  expect([...one.complaints, ...other.complaints]).toEqual([]);
  await one.close();
  await other.close();
});

test("a stop during a lost connection is shown once the connection is back", async () => {
  const { gateway } = stage;
  const { page, context, close } = await stage.browser.page();
  let opened = 0;
  // The stream ends as soon as it has begun, and cannot be reopened for a while.
  await context.route("**/v1/events", (route) => {
    opened += 1;
    if (opened > 1) return route.abort("connectionrefused");
    const body = "retry: 200\nevent: feed.open\ndata: {}\n\n";
    return route.fulfill({ status: 200, contentType: "text/event-stream", body });
  });
  await page.goto(stage.at("/settings/about"));
  await stage.signIn(page);
  await eventually(() => opened > 2);
  await page
    .getByText(/No connection/)
    .first()
    .waitFor();
  await gateway.call("POST", "/v1/workspace/stop");
  expect(await page.getByText("The workspace is stopped.", { exact: true }).count()).toBe(0);
  await context.unroute("**/v1/events");
  await page.getByText("The workspace is stopped.", { exact: true }).waitFor();
  await close();
});

test("messages of one workspace are not shown in another, in the same tab", async () => {
  const { gateway } = stage;
  const theirs = await gateway.workspace("other-company");
  const { page, close } = await stage.open("", { secret: theirs });
  await gateway.call("POST", "/v1/workspace/stop", { token: theirs });
  await page.getByText("The workspace is stopped.", { exact: true }).waitFor();
  await page.getByRole("button", { name: /account and colours/ }).click();
  await button(page, "Sign out").click();
  await stage.signIn(page);
  await button(page, "Stop all").waitFor();
  expect(await page.getByText("The workspace is stopped.", { exact: true }).count()).toBe(0);
  await resume(theirs);
  await close();
});

test("everything can be stopped even if the page cannot find out who is signed in", async () => {
  const { gateway } = stage;
  const { page, context, close } = await stage.open("/tasks");
  await context.route("**/v1/session", (route) =>
    route.fulfill({
      status: 503,
      contentType: "application/problem+json",
      body: JSON.stringify({ code: "ledger_unavailable", detail: "The evidence ledger cannot be written." }),
    }),
  );
  await page.reload();
  await page
    .getByRole("alert")
    .getByText(/ledger cannot be written/)
    .waitFor();
  await button(page, "Stop all …").click();
  await button(page, "Stop all agents of the workspace").click();
  await page.getByText("The workspace is stopped.", { exact: true }).waitFor();
  expect((await gateway.call("GET", "/v1/workspace")).body.status).toBe("stopped");
  await close();
});

test("signing out ends the session on the server, and other tabs ask to sign in", async () => {
  const { page, context, close } = await stage.open("/tasks");
  const second = await context.newPage();
  await second.goto(stage.at("/vault"));
  await heading(second, "Vault").waitFor();
  const cookies = await context.cookies();
  await page.getByRole("button", { name: /account and colours/ }).click();
  await button(page, "Sign out").click();
  await heading(page, "Sign in").waitFor();
  await second.getByRole("heading", { name: /^Sign in/ }).waitFor();
  // A copy of the old cookie no longer works.
  await context.addCookies(cookies);
  const answer = await page.evaluate<number>("fetch('/v1/session').then(({ status }) => status)");
  expect(answer).toBe(401);
  await close();
});

test("the chosen colours apply now and at the next visit", async () => {
  const { page, close } = await stage.open("", { scheme: "light" });
  const ground = () => page.evaluate<string>("getComputedStyle(document.documentElement).backgroundColor");
  const light = await ground();
  await page.getByRole("button", { name: /account and colours/ }).click();
  await page.getByLabel("Colours").selectOption("dark");
  await eventually(async () => (await ground()) !== light);
  const dark = await ground();
  await page.reload();
  await heading(page, "Overview").waitFor();
  expect(await ground()).toBe(dark);
  await close();
});
