/** The helpers for tests of the console do what a person does: they sign in on the sign-in page. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { createSecret } from "../../../src/access/secret.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import { eventually } from "../../support/browser.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(90_000);
let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
});
afterAll(() => stage.close());

/** The holder of the page's cookie, as REST answers. */
const ASK = `fetch("/v1/session").then((response) => response.ok ? response.json() : null)`;

test("an unknown token signs nobody in", async () => {
  const { page } = await stage.browser.page();
  await page.goto(stage.at());
  await page.getByLabel("Token", { exact: true }).fill(createSecret(systemRandom));
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("alert").waitFor();
  expect(await page.evaluate<unknown>(ASK)).toBeNull();
});

test("only the page that is given a token is signed in, at the requested address", async () => {
  const secret = await stage.gateway.token({ name: "ada's", scopes: ["tasks:read"], person: "Ada" });
  const { page, complaints } = await stage.open("/tasks", { secret });
  expect(page.url()).toBe(stage.at("/tasks"));
  expect(await page.evaluate<unknown>(ASK)).toMatchObject({ person: "Ada", scopes: ["tasks:read"] });
  expect(await page.evaluate<string>("document.cookie")).toBe("");
  const other = await stage.browser.page();
  await other.page.goto(stage.at("/tasks"));
  await other.page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  expect(complaints.filter((complaint) => !complaint.includes("401"))).toEqual([]);
});

test("models of two tiers answer, and have prices", async () => {
  const { gateway, model } = stage;
  await gateway.agent("clerk");
  model.script("large", { chunks: ["done"], usage: { prompt_tokens: 1_000, completion_tokens: 1_000 } });
  const sent = { agent: "clerk", prompt: "hello", tier: 2 };
  const { body: task } = await gateway.call("POST", "/v1/tasks", { body: sent });
  const read = async () => (await gateway.call("GET", `/v1/tasks/${task.id}`)).body;
  await eventually(async () => (await read()).status === "succeeded");
  expect(await read()).toMatchObject({ output: "done", model: "up/large", credits_consumed: 5 });
});
