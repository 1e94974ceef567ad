/** The list of tokens and the actions on it, checked over REST afterwards. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { becomes, eventually } from "../../support/browser.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(90_000);
let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
  await stage.gateway.agent("clerk");
});
afterAll(() => stage.close());

interface Issued {
  readonly id: string;
  readonly secret: string;
}

/** Issues a token over REST. */
async function issued(request: object): Promise<Issued> {
  const { status, body } = await stage.gateway.call("POST", "/v1/tokens", { body: request });
  expect(status).toBe(201);
  return body;
}

const statusOf = async (secret: string) =>
  (await stage.gateway.call("GET", "/v1/session", { token: secret })).status;
const row = (page: Page, name: string) =>
  page
    .getByRole("list", { name: "Tokens" })
    .getByRole("listitem")
    .filter({ has: page.getByRole("heading", { name, exact: true }) });
const ISSUE = { name: "Issue token", exact: true } as const;

test("a token without tokens:write is told so, and sees no action that would be refused", async () => {
  const { secret } = await issued({ name: "reader", scopes: ["tasks:read"] });
  const { page, close } = await stage.open("/settings/developers", { secret });
  await page.getByRole("heading", { name: "Your token may not see this" }).waitFor();
  await page.getByText("tokens:write").waitFor();
  const tabs = page.getByRole("navigation", { name: "Settings" });
  expect(await tabs.getByRole("link").allTextContents()).toEqual(["About"]);
  await page.goto(stage.at("/settings"));
  await page.getByRole("heading", { name: "This server" }).waitFor();
  await page.goto(stage.at("/settings/nothing"));
  await page.getByRole("heading", { name: "There is no such section" }).waitFor();
  await close();
});

test("a token cannot hand out scopes that it does not hold", async () => {
  const { secret } = await issued({ name: "deputy", scopes: ["tokens:write", "tasks:read"] });
  const { page, close } = await stage.open("/settings/developers?issue=1", { secret });
  expect(await page.getByLabel("tasks:read").isDisabled()).toBe(false);
  for (const scope of ["tasks:write", "admin"]) expect(await page.getByLabel(scope).isDisabled()).toBe(true);
  await page.getByLabel("Name", { exact: true }).fill("too much");
  await page.getByLabel("Tools", { exact: true }).fill("vault.*");
  await page.getByRole("button", ISSUE).click();
  await page.getByText("tools:vault.*", { exact: false }).first().waitFor();
  const { body } = await stage.gateway.call("GET", "/v1/tokens");
  expect(JSON.stringify(body)).not.toContain("too much");
  await close();
});

test("mistakes are shown at their fields, and the input is kept", async () => {
  const { page, close } = await stage.open("/settings/developers?issue=1");
  await page.getByLabel("Name", { exact: true }).fill("half-made");
  await page.getByRole("button", ISSUE).click();
  await page.getByRole("group", { name: "What it may do" }).getByText("is required for a token").waitFor();

  await page.getByLabel("tasks:read").check();
  await page.getByLabel("Tools", { exact: true }).fill("vault.*\nnot a tool");
  await page.getByRole("button", ISSUE).click();
  const tools = page.locator(".field", { has: page.getByLabel("Tools", { exact: true }) });
  await tools.getByText("is not a scope").waitFor();
  await becomes(page.getByLabel("Tools", { exact: true }), "[aria-invalid=true]");
  expect(await page.getByRole("group", { name: "What it may do" }).locator(".settings-error").count()).toBe(
    0,
  );

  await page.getByLabel("Tools", { exact: true }).fill("vault.*");
  await page.getByLabel("Expires", { exact: true }).selectOption("other");
  await page.getByLabel("After", { exact: true }).fill("soon");
  await page.getByRole("button", ISSUE).click();
  await page
    .locator(".field", { has: page.getByLabel("After", { exact: true }) })
    .locator(".error")
    .waitFor();
  expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("half-made");
  expect(await page.getByLabel("tasks:read").isChecked()).toBe(true);
  await close();
});

test("a half-typed token is discarded only after confirmation", async () => {
  const { page, close } = await stage.open("/settings/developers?issue=1");
  const form = page.getByRole("dialog", { name: "Issue a token" });
  const ask = page.getByRole("dialog", { name: "Discard your input?" });
  await page.getByLabel("tasks:read").check();
  // A browser closes a dialog by itself at the second Escape; none of these may discard anything.
  for (let times = 0; times < 4; times++) await page.keyboard.press("Escape");
  // After two frames, whatever they opened has been drawn.
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  await eventually(async () => {
    if (await ask.isVisible()) await ask.getByRole("button", { name: "Keep editing" }).click();
    return (await ask.count()) === 0;
  });
  expect(await page.getByLabel("tasks:read").isChecked()).toBe(true);
  await form.getByRole("button", { name: "Cancel" }).click();
  await ask.getByRole("button", { name: "Discard" }).click();
  await form.waitFor({ state: "detached" });
  await close();
});

test("a token is issued with everything that was chosen", async () => {
  const { page, close } = await stage.open("/settings/developers?issue=1&agent=clerk");
  await page.getByLabel("Name", { exact: true }).fill("whole");
  await page.getByLabel("Only the scopes chosen here").check();
  await page.getByLabel("tasks:read").check();
  await page.getByLabel("approvals:write").check();
  await page.getByLabel("Tools", { exact: true }).fill("vault.*\n\n time.now");
  await page.getByLabel("Expires", { exact: true }).selectOption("other");
  await page.getByLabel("After", { exact: true }).fill("12h");
  await page.getByLabel("Tools over MCP").selectOption("search");
  await page.getByLabel("Person (optional)").fill("Ada Lovelace");
  await page.getByLabel("Role (optional)").fill("duty overseer");
  await page.getByRole("button", ISSUE).click();
  await page.getByRole("heading", { name: "Secret of whole" }).waitFor();
  const { body } = await stage.gateway.call("GET", "/v1/tokens?limit=1");
  const [token] = body.data;
  expect(token).toMatchObject({
    name: "whole",
    agent: "clerk",
    scopes: ["tasks:read", "approvals:write", "tools:vault.*", "tools:time.now"],
    tools_mode: "search",
    person: "Ada Lovelace",
    role: "duty overseer",
  });
  expect(Date.parse(token.expires_at) - Date.parse(token.created_at)).toBe(12 * 3_600_000);
  await close();
});

test("a rotated token's old secret ends at once, or remains valid for the chosen time", async () => {
  const ended = await issued({ name: "ends", scopes: ["tasks:read"] });
  const works = await issued({ name: "goes on", scopes: ["tasks:read"] });
  const { page, close } = await stage.open("/settings");
  for (const [name, grace] of [
    ["ends", null],
    ["goes on", "1h"],
  ] as const) {
    await page.getByRole("button", { name: `Rotate ${name}` }).click();
    if (grace !== null) await page.getByLabel("The old secret stays valid for").selectOption(grace);
    await page.getByRole("button", { name: "Rotate", exact: true }).click();
    await page.getByRole("heading", { name: `Secret of ${name}` }).waitFor();
    const secret = await page.getByRole("region", { name: "Secret", exact: true }).textContent();
    expect(await statusOf(secret ?? "")).toBe(200);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "I have saved it" }).click();
  }
  expect(await statusOf(ended.secret)).toBe(401);
  expect(await statusOf(works.secret)).toBe(200);

  await page.getByRole("button", { name: "Rotate ends" }).click();
  await page.getByLabel("The old secret stays valid for").selectOption("other");
  await page.getByLabel("Time", { exact: true }).fill("a while");
  await page.getByRole("button", { name: "Rotate", exact: true }).click();
  await page
    .locator(".field", { has: page.getByLabel("Time", { exact: true }) })
    .locator(".error")
    .waitFor();
  await close();
});

test("a token is revoked only after a confirmation", async () => {
  const { secret } = await issued({ name: "leaver", scopes: ["tasks:read"] });
  const { page, close } = await stage.open("/settings");
  await page.getByRole("button", { name: "Revoke leaver" }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  expect(await statusOf(secret)).toBe(200);
  await page.getByRole("button", { name: "Revoke leaver" }).click();
  await page.getByRole("button", { name: "Revoke", exact: true }).click();
  await row(page, "leaver").waitFor({ state: "detached" });
  expect(await statusOf(secret)).toBe(401);
  await close();
});

test("a reader who revokes their own token is warned, and is signed out", async () => {
  const { secret } = await issued({ name: "my own", scopes: ["tokens:write", "agents:read"] });
  const { page, close } = await stage.open("/settings", { secret });
  await row(page, "my own").getByText("you, now").waitFor();
  await page.getByRole("button", { name: "Rotate my own" }).click();
  const graces = await page.getByLabel("The old secret stays valid for").locator("option").allTextContents();
  expect(graces).toEqual(["10 minutes", "1 hour", "24 hours"]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Revoke my own" }).click();
  await page.getByText("You are signed in with this token.").waitFor();
  await page.getByRole("button", { name: "Revoke", exact: true }).click();
  await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  expect(page.url()).toBe(stage.at("/settings"));
  await close();
});

test("the list follows changes made elsewhere", async () => {
  const { page, complaints, close } = await stage.open("/settings");
  await row(page, "admin").waitFor();
  const { id } = await issued({ name: "from elsewhere", scopes: ["tasks:read"] });
  await row(page, "from elsewhere").waitFor();
  await stage.gateway.call("DELETE", `/v1/tokens/${id}`);
  await row(page, "from elsewhere").waitFor({ state: "detached" });
  expect(complaints).toEqual([]);
  await close();
});

test("an agent's token issues tokens only for that agent", async () => {
  const { secret } = await issued({
    name: "clerk's",
    agent: "clerk",
    scopes: ["tokens:write", "tasks:read"],
  });
  const { page, close } = await stage.open("/settings/developers?issue=1", { secret });
  const acts = page.getByLabel("Acts as", { exact: true });
  expect(await acts.inputValue()).toBe("clerk");
  expect(await acts.isDisabled()).toBe(true);
  await page.getByLabel("Name", { exact: true }).fill("narrower");
  await page.getByLabel("Only the scopes chosen here").check();
  await page.getByLabel("tasks:read").check();
  await page.getByRole("button", ISSUE).click();
  await page.getByRole("heading", { name: "Secret of narrower" }).waitFor();
  await eventually(async () => {
    const { body } = await stage.gateway.call("GET", "/v1/tokens?limit=1");
    return body.data[0].name === "narrower" && body.data[0].agent === "clerk";
  });
  await close();
});
