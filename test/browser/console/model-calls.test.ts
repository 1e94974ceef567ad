/**
 * Clients' own model calls in the console: in the overview, on an agent's page and in the ledger, alongside tasks'
 * calls.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { axe } from "../../support/axe.ts";
import { noSidewaysScroll } from "../../support/browser.ts";
import { run, until } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
const MARKUP = "<img src=x onerror=alert(1)>";

let stage: TestConsole;
let client: string;
beforeAll(async () => {
  stage = await openConsole();
  const { gateway, model } = stage;
  await gateway.agent("writer");
  await gateway.agent("idle");
  client = await gateway.token({ agent: "writer" });
  const usage = { prompt_tokens: 1_234, completion_tokens: 56 };
  model.script("small", { chunks: ["In the ", "boathouse"], usage });
  model.script("large", { chunks: ["ok"], usage });
  model.script("spare", { chunks: ["ok"], usage });
});
afterAll(() => stage.close());

async function complete(name: string, more: object = {}): Promise<void> {
  const body = { model: name, messages: [{ role: "user", content: `Where? ${MARKUP}` }], ...more };
  const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${client}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  await response.text();
}

const card = (page: Page, name: string) =>
  page.locator("section.card").filter({ has: page.getByRole("heading", { name, exact: true }) });
const calls = (page: Page) => card(page, "Recent model calls by clients");
const entries = (page: Page) => page.getByRole("region", { name: "Entries, newest first" });
const unexpected = (complaints: readonly string[]) => complaints.filter((one) => !one.includes("401"));

test("an agent's page shows calls beside tasks as they end, and those of no other agent", async () => {
  const { page, complaints } = await stage.open("/agents/writer");
  await calls(page).getByText("No calls yet.").waitFor();
  await complete("up/small", { stream: true });
  const first = calls(page).getByRole("listitem").first();
  await first.getByText("succeeded").waitFor();
  for (const part of ["up/small", "Chat Completions", "1,234 in", "56 out", "First token after", "credits"]) {
    expect(await first.textContent()).toContain(part);
  }
  await page.goto(stage.at("/agents/idle"));
  await calls(page).getByText("No calls yet.").waitFor();
  expect(unexpected(complaints)).toEqual([]);
});

test("a reader who may not read the ledger is told so, and nothing is requested", async () => {
  const secret = await stage.gateway.token({ scopes: ["agents:read"] });
  const { page, requests } = await stage.open("/agents/writer", { secret });
  await calls(page).getByText("ledger:read").waitFor();
  expect(requests.filter((address) => address.includes("/v1/ledger"))).toEqual([]);
});

test("the ledger's filter shows clients' model calls, and none of tasks", async () => {
  await run(stage.gateway, { agent: "writer", tier: 1 });
  const { page } = await stage.open("/ledger");
  await page.getByLabel("Model calls outside tasks").check();
  await page.getByRole("button", { name: "Apply", exact: true }).click();
  await page.waitForURL((url) => url.search.includes("outside_tasks=true"));
  await entries(page).getByText("Chat Completions").first().waitFor();
  expect(new URL(page.url()).searchParams.get("action")).toBe("model.call");
  const rows = entries(page).getByRole("listitem");
  expect(await rows.count()).toBe(2);
  const text = (await rows.allTextContents()).join("\n");
  for (const part of ["outcome of", "intent", "writer", "up/small", "1,234 in, 56 out", "first token"]) {
    expect(text).toContain(part);
  }
  expect(text).not.toContain("task_");
  await page.reload();
  await entries(page).getByText("Chat Completions").first().waitFor();
  expect(await page.getByLabel("Model calls outside tasks").isChecked()).toBe(true);
  await page.getByRole("link", { name: "Export" }).click();
  await page.getByText("A bundle cannot leave out tasks’ calls").waitFor();
});

test("from the intent to its outcome and back, with the prompt and the answer on request", async () => {
  const { data } = (await stage.gateway.call("GET", "/v1/ledger?action=model.call&outside_tasks=true")).body;
  const [intent, outcome] = data;
  const { page, complaints, requests } = await stage.open(`/ledger/${intent.seq}`);
  await page.getByRole("heading", { name: "Model call by a client" }).waitFor();
  await page.getByRole("button", { name: "Show the prompt" }).click();
  await page.getByRole("region", { name: "Prompt" }).getByText(MARKUP).waitFor();
  expect(requests.filter((address) => address.endsWith("/payload"))).toHaveLength(1);
  await page.getByRole("link", { name: `Outcome: entry ${outcome.seq}` }).click();
  await page.waitForURL(stage.at(`/ledger/${outcome.seq}`));
  const content = card(page, "Content");
  for (const part of ["Chat Completions", "1,234", "First token", "Attempt"]) {
    await content.getByText(part, { exact: true }).first().waitFor();
  }
  await page.getByRole("button", { name: "Show the answer" }).click();
  await page.getByRole("region", { name: "Answer" }).getByText("In the boathouse").waitFor();
  await page.getByRole("link", { name: `Intent: entry ${intent.seq}` }).click();
  await page.getByRole("button", { name: "Show the prompt" }).waitFor();
  await stage.gateway.call("DELETE", `/v1/ledger/${intent.seq}/payload`);
  await page.getByRole("button", { name: "Show the prompt" }).click();
  await page.getByText("It was erased.").waitFor();
  expect(unexpected(complaints)).toEqual([]);
});

test("a reader without tasks:read sees that there is a prompt, and not the prompt", async () => {
  const { data } = (await stage.gateway.call("GET", "/v1/ledger?action=model.call&outside_tasks=true")).body;
  const secret = await stage.gateway.token({ scopes: ["ledger:read"] });
  const { page } = await stage.open(`/ledger/${data[0].seq}`, { secret });
  await card(page, "Prompt").getByText("tasks:read").waitFor();
  expect(await page.getByRole("button", { name: "Show the prompt" }).count()).toBe(0);
});

test("the overview counts them: how many, failed, credits, tokens and the first token", async () => {
  stage.model.script("broken", { status: 400 });
  await complete("up/broken");
  await until(async () => {
    const { totals } = (await stage.gateway.call("GET", "/v1/usage")).body;
    return totals.client_calls.calls === 2;
  });
  const { totals } = (await stage.gateway.call("GET", "/v1/usage")).body;
  const { page, complaints } = await stage.open();
  const figures = page.getByRole("region", { name: "Model calls by clients" });
  const figure = (name: string) => figures.locator(".figure").filter({ hasText: name });
  await figure("Model calls by clients").getByText("2", { exact: true }).waitFor();
  await figure("Failed").getByText("1", { exact: true }).waitFor();
  await figure("Clients' credits").getByText(String(totals.client_calls.credits), { exact: true }).waitFor();
  await figure("Clients' tokens").getByText("in, ").waitFor();
  await figure("First token").getByText("median").waitFor();
  await page.getByRole("figure", { name: "Model calls by clients", exact: true }).waitFor();
  await page.getByRole("figure", { name: "First token for clients", exact: true }).waitFor();
  await calls(page).getByText("up/broken").waitFor();
  await figures.getByRole("link").click();
  await entries(page).getByText("up/broken").first().waitFor();
  expect(unexpected(complaints)).toEqual([]);
});

for (const width of [390, 1_440]) {
  test(`${width} pixels wide: axe finds nothing, and nothing overflows`, async () => {
    const { data } = (await stage.gateway.call("GET", "/v1/ledger?action=model.call&outside_tasks=true"))
      .body;
    const { page } = await stage.open("", { width });
    await page.getByRole("figure", { name: "First token for clients", exact: true }).waitFor();
    expect(await axe(page)).toEqual([]);
    await noSidewaysScroll(page);
    await page.goto(stage.at("/agents/writer"));
    await calls(page).getByRole("listitem").first().waitFor();
    expect(await axe(page)).toEqual([]);
    await noSidewaysScroll(page);
    await page.goto(stage.at(`/ledger/${data[1].seq}`));
    await page.getByRole("button", { name: "Show the answer" }).click();
    await page.getByRole("region", { name: "Answer" }).waitFor();
    expect(await axe(page)).toEqual([]);
    await noSidewaysScroll(page);
    await page.goto(stage.at("/ledger?action=model.call&outside_tasks=true"));
    await entries(page).getByRole("link").first().waitFor();
    expect(await axe(page)).toEqual([]);
    await noSidewaysScroll(page);
  });
}
