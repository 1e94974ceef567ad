/** Limits, notifications, models, sessions and the page about the server, checked over REST afterwards. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { parse } from "yaml";
import { eventually } from "../../support/browser.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(90_000);
let stage: TestConsole;
let receiver: Bun.Server<unknown>;
/** The status that the receiver of notices answers. */
let answer = 200;
let posts = 0;

beforeAll(async () => {
  receiver = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch() {
      posts += 1;
      return new Response("", { status: answer });
    },
  });
  stage = await openConsole({
    limits: { requests_per_minute: 3_000 },
    more: `notify: { webhook: "http://127.0.0.1:${receiver.port}/hook/its-credential" }`,
  });
  await stage.gateway.agent("clerk");
});
afterAll(async () => {
  await stage.close();
  await receiver.stop(true);
});

const workspace = async () => (await stage.gateway.call("GET", "/v1/workspace")).body;
const change = (body: object) => stage.gateway.call("PATCH", "/v1/workspace", { body });
const errorAt = (page: Page, label: string) =>
  page.locator(".field", { has: page.getByLabel(label) }).locator(".error");

test("an agent's token sees the limits and cannot change them", async () => {
  const secret = await stage.gateway.token({ agent: "clerk", scopes: ["settings:write"] });
  const { page, close } = await stage.open("/settings/limits", { secret });
  await page.getByText("Your token acts as clerk").waitFor();
  expect(await page.getByLabel("Requests per minute").isDisabled()).toBe(true);
  expect(await page.getByRole("button", { name: "Save changes" }).count()).toBe(0);
  await close();
});

test("a refused limit is reported at its field, and the input is kept", async () => {
  const { page, close } = await stage.open("/settings/limits");
  await page.getByLabel("Requests per minute").fill("10000001");
  await page.getByLabel("Credits per month").fill("0.0000001");
  await page.getByRole("button", { name: "Save changes" }).click();
  await errorAt(page, "Requests per minute").waitFor();
  await page.getByLabel("Requests per minute").fill("3000");
  await page.getByRole("button", { name: "Save changes" }).click();
  await errorAt(page, "Credits per month").waitFor();
  expect(await page.getByLabel("Credits per month").inputValue()).toBe("0.0000001");
  expect((await workspace()).budget.credits_per_month).toBeNull();
  await page.getByRole("button", { name: "Undo changes" }).click();
  expect(await page.getByLabel("Credits per month").inputValue()).toBe("");
  await close();
});

test("unsaved limits are discarded only after confirmation", async () => {
  const { page, close } = await stage.open("/settings/limits");
  const requests = page.getByLabel("Requests per minute");
  await requests.fill("");
  await page.getByRole("link", { name: "About", exact: true }).click();
  const ask = page.getByRole("dialog", { name: "Leave without saving?" });
  await ask.getByRole("button", { name: "Keep editing" }).click();
  await ask.waitFor({ state: "detached" });
  expect(await requests.inputValue()).toBe("");
  await page.getByRole("link", { name: "About", exact: true }).click();
  await ask.getByRole("button", { name: "Leave without saving" }).click();
  await page.getByRole("heading", { name: "This server" }).waitFor();
  await close();
});

test("saving sends only what was changed", async () => {
  const { page, complaints, close } = await stage.open("/settings/limits");
  const save = page.getByRole("button", { name: "Save changes" });
  await page.getByLabel("Concurrent tasks").fill("7");
  // Somebody else changes another limit: its field follows, and saving does not overwrite it.
  await change({ limits: { requests_per_minute: 2_500 } });
  await eventually(async () => (await page.getByLabel("Requests per minute").inputValue()) === "2500");
  expect(await page.getByLabel("Concurrent tasks").inputValue()).toBe("7");
  await page.getByLabel("Enforced").check();
  await page.getByLabel("Credits per month").fill("12.5");
  await save.click();
  await page.getByText("The limits have been changed.").waitFor();
  expect(await workspace()).toMatchObject({
    limits: { requests_per_minute: 2_500, concurrent_tasks: 7, enforcement: "enforced" },
    budget: { credits_per_month: 12.5 },
  });
  expect(await save.isDisabled()).toBe(true);
  await page.getByText("0 of 7 running").waitFor();
  await page.getByLabel("Credits per month").fill("");
  await page.getByLabel("Soft").check();
  await save.click();
  await eventually(async () => (await workspace()).budget.credits_per_month === null);
  expect((await workspace()).limits.enforcement).toBe("soft");
  expect(complaints).toEqual([]);
  await close();
});

test("current use follows the tasks without a request, and credits are counted on demand", async () => {
  const { page, requests, close } = await stage.open("/settings/limits");
  await page.getByText("0 used, of no budget").waitFor();
  stage.model.script("large", {
    chunks: ["done"],
    usage: { prompt_tokens: 1_000, completion_tokens: 1_000 },
  });
  const body = { agent: "clerk", prompt: "hello", tier: 2 };
  const read = () => requests.filter((address) => address.endsWith("/v1/workspace")).length;
  const before = read();
  const asked = await stage.gateway.call("POST", "/v1/tasks", { body });
  expect(asked.status).toBe(202);
  await eventually(
    async () => (await stage.gateway.call("GET", `/v1/tasks/${asked.body.id}`)).body.status === "succeeded",
  );
  expect(read()).toBe(before);
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByText("5 used, of no budget").waitFor();
  await close();
});

test("the webhook is shown without its credential, and a delivery can be posted again", async () => {
  answer = 503;
  await stage.gateway.call("POST", "/v1/tasks", { body: { agent: "clerk", prompt: "hello", tier: 2 } });
  const failing = async () => {
    const { body } = await stage.gateway.call("GET", "/v1/webhooks/deliveries?limit=200");
    return body.data.find(
      (one: { status: string; attempts: number }) => one.status === "pending" && one.attempts > 0,
    );
  };
  await eventually(async () => (await failing()) !== undefined);
  answer = 200;
  const { id } = await failing();
  const { page, complaints, close } = await stage.open("/settings/notifications");
  await page.getByText(`http://127.0.0.1:${receiver.port}/…`).waitFor();
  await page.getByText("A call is waiting for approval").waitFor();
  const delivery = page.getByRole("row").filter({ has: page.getByTitle(id) });
  await delivery.getByText("it answered 503").waitFor();
  const before = posts;
  await delivery.getByRole("button", { name: /^Post again/ }).click();
  await page.getByText("will be posted again.").waitFor();
  await eventually(() => posts > before);
  await eventually(async () => {
    await page.getByRole("button", { name: "Read again" }).click();
    return delivery.getByText("delivered").isVisible();
  });
  expect(await page.content()).not.toContain("its-credential");
  expect(complaints).toEqual([]);
  await close();
});

test("a spent budget is announced while the page is open", async () => {
  const { page, close } = await stage.open("/settings/notifications");
  await page.getByText("No limit has been exceeded").waitFor();
  await change({ budget: { credits_per_month: 10 } });
  await stage.gateway.call("POST", "/v1/tasks", { body: { agent: "clerk", prompt: "hello", tier: 2 } });
  const notices = page.getByRole("list", { name: "Notices" });
  await notices.getByText("The workspace's budget for this month is spent.").waitFor();
  await change({ budget: { credits_per_month: null } });
  await close();
});

test("tiers and prices are shown as configured, in equivalent YAML", async () => {
  const { page, close } = await stage.open("/settings/models");
  const tier = page.locator("section.card", {
    has: page.getByRole("heading", { name: "Tier 1", exact: true }),
  });
  await tier.getByRole("listitem").first().waitFor();
  expect(await tier.getByRole("listitem").allTextContents()).toEqual(["up/small", "up/spare"]);
  await page.getByRole("row", { name: "up/large up 2 1 4" }).waitFor();
  const yaml = await page.getByRole("region", { name: "gatehouse.yaml" }).textContent();
  expect(parse(yaml ?? "")).toEqual({
    tiers: {
      1: { name: "tier 1", models: ["up/small", "up/spare"] },
      2: { name: "tier 2", models: ["up/large"] },
    },
    models: {
      "up/large": { input: 1, output: 4 },
      "up/small": { input: 0.1, output: 0.4 },
      "up/spare": { input: 0.2, output: 0.8 },
    },
  });
  await close();
});

test("a session can be ended from another browser, and so can one's own", async () => {
  const secret = await stage.gateway.token({ name: "ada's", person: "Ada", scopes: ["tasks:read"] });
  const other = await stage.open("/tasks", { secret });
  const { page, close } = await stage.open("/settings/sessions");
  const sessions = page.getByRole("list", { name: "Sessions" }).getByRole("listitem");
  await sessions.filter({ hasText: "this one" }).getByText("Chrome").waitFor();
  await page.getByRole("button", { name: "Sign out Ada" }).click();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await sessions.filter({ hasText: "Ada" }).waitFor({ state: "detached" });
  await other.page.getByRole("button", { name: "Sign in", exact: true }).waitFor();

  const own = sessions.filter({ hasText: "this one" });
  await own.getByRole("button").click();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  await stage.signIn(page);
  expect(page.url()).toBe(stage.at("/settings/sessions"));
  await sessions.filter({ hasText: "this one" }).waitFor();
  await other.close();
  await close();
});

test("the about section shows the version, the endpoints and the ledger's key", async () => {
  const { page, complaints, close } = await stage.open("/settings/about");
  const { body: document } = await stage.gateway.call("GET", "/openapi.json");
  const { body: key } = await stage.gateway.call("GET", "/v1/ledger/key");
  await page.getByText(document.info.version, { exact: true }).waitFor();
  await page.getByText(`${stage.gateway.url}/mcp`, { exact: true }).waitFor();
  expect(await page.getByRole("region", { name: "Verifier key" }).textContent()).toBe(key.vkey);
  await stage.gateway.call("POST", "/v1/workspace/stop");
  const card = page.locator("section.card", {
    has: page.getByRole("heading", { name: "Stopping everything" }),
  });
  await card.getByText("stopped", { exact: true }).waitFor();
  await stage.gateway.call("POST", "/v1/workspace/resume");
  await card.getByText("active", { exact: true }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});
