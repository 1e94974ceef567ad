/** What operators and auditors see of clients' model calls: metrics, statistics and the report, told apart from tasks' calls. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Unpacked } from "../ledger/verify/bundle/support.ts";
import { startFakeMessages } from "../support/fake-messages.ts";
import { until } from "../support/until.ts";
import { run } from "../tasks/support.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

// Calls that cost nothing are written to the statistics every few seconds.
setDefaultTimeout(60_000);

const anthropic = startFakeMessages("sk-upstream");
let stage: DialectStage;
beforeAll(async () => {
  stage = await openDialectStage({
    providers: `  claude: { kind: anthropic, base_url: ${anthropic.url}, api_key: sk-upstream }\n`,
  });
  const { gateway, upstream } = stage;
  const usage = { prompt_tokens: 10, completion_tokens: 5 };
  upstream.script("priced", { chunks: ["Good ", "evening"], usage });
  upstream.script("second", { chunks: ["from the second"], usage });
  upstream.script("bad", { status: 400 });
  anthropic.script("any", { message: { input_tokens: 21 } });

  await send("chat/completions", { model: "up/priced", messages: USER });
  await send("chat/completions", { model: "up/priced", stream: true, messages: USER });
  await send("chat/completions", { model: "up/bad", messages: USER });
  await send("chat/completions", { model: "up/never", messages: USER }, stage.clerk);
  await send("chat/completions", { model: "up/second", messages: USER }, stage.clerk);
  // Refused while the request is read.
  await send("chat/completions", { model: 7 });
  await send("responses", { model: "up/second", input: "x", previous_response_id: "resp_unknown" });
  await send("messages/count_tokens", { model: "claude/any", messages: USER });
  await send("messages/count_tokens", { model: "up/first", messages: USER });
  await run(gateway, { agent: "clerk", prompt: "a task of its own" });
});
afterAll(async () => {
  await stage.stop();
  await anthropic.close();
});

const USER = [{ role: "user", content: "Good morning" }];

async function send(path: string, body: object, token = stage.gateway.admin): Promise<number> {
  const response = await fetch(`${stage.gateway.url}/v1/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  await response.text();
  return response.status;
}

test("metrics have clients' calls by dialect and outcome, their first tokens, and all tokens by model", async () => {
  const response = await fetch(`${stage.gateway.url}/metrics`, {
    headers: { authorization: `Bearer ${stage.gateway.admin}` },
  });
  const lines = (await response.text()).split("\n");
  const calls = lines.filter((line) => line.startsWith("gatehouse_client_model_calls_total{"));
  expect(calls.sort()).toEqual([
    'gatehouse_client_model_calls_total{dialect="chat_completions",outcome="denied"} 2',
    'gatehouse_client_model_calls_total{dialect="chat_completions",outcome="failed"} 1',
    'gatehouse_client_model_calls_total{dialect="chat_completions",outcome="succeeded"} 3',
    'gatehouse_client_model_calls_total{dialect="responses",outcome="denied"} 1',
  ]);
  expect(lines).toContain('gatehouse_first_token_seconds_count{model="up/priced"} 2');
  expect(
    lines.filter((line) => line.startsWith('gatehouse_first_token_seconds_count{model="up/(other)')),
  ).toEqual([]);
  expect(lines).toContain('gatehouse_tokens_total{model="up/priced",kind="input"} 20');
  expect(lines).toContain('gatehouse_tokens_total{model="up/priced",kind="output"} 10');
  // A count is not a model call, and an estimate is not sent.
  expect(lines).toContain('gatehouse_token_counts_total{outcome="succeeded"} 1');
});

test("statistics count them as model calls, and show which part clients and counts of tokens are", async () => {
  const report = async () => (await stage.gateway.call("GET", "/v1/usage")).body;
  await until(async () => {
    const { totals } = await report();
    return totals.client_calls.calls === 4 && totals.token_counts.requests === 1;
  });
  const { totals, ...slots } = await report();
  expect(totals.client_calls).toMatchObject({ calls: 4, failed: 1, cancelled: 0, credits: 0.04 });
  expect(totals.client_calls).toMatchObject({ input_tokens: 30, output_tokens: 15 });
  expect(totals.token_counts).toEqual({ requests: 1, failed: 0, cancelled: 0 });
  // The task's own calls are the rest: one for each model of its route until one answers.
  const { body } = await stage.gateway.call("GET", "/v1/ledger?action=model.call&limit=200");
  const outcomes = body.data.filter(({ phase }: { phase: string }) => phase === "outcome");
  expect(totals.models.calls).toBe(outcomes.length);
  expect(totals.models.calls).toBeGreaterThan(4);
  expect(totals.credits).toBe(0.04);
  expect(totals.latency_ms.first_token.p50).toBeNumber();
  const sum = (values: readonly number[]) => values.reduce((all, each) => all + each, 0);
  expect(sum(slots.client_calls.calls)).toBe(4);
  expect(sum(slots.token_counts.requests)).toBe(1);
  // Nobody's credits are counted twice.
  for (const breakdown of [slots.credits.by_agent, slots.credits.by_model]) {
    expect(breakdown.top.map(({ credits }: { credits: number }) => credits)).toEqual([0.04]);
  }
  const own = (await stage.gateway.call("GET", "/v1/usage?agent=clerk")).body;
  expect(own.totals.client_calls).toMatchObject({ calls: 1, input_tokens: 10 });
});

test("the Article 14 report names clients' calls by their API, and prompts that were sent only to be counted", async () => {
  const response = await fetch(`${stage.gateway.url}/v1/ledger?format=article14`, {
    headers: { authorization: `Bearer ${stage.gateway.admin}` },
  });
  const page = (await Unpacked.of(await response.blob())).text("report.html");
  const table = (caption: string) =>
    new RegExp(`<caption>${caption}</caption>[^]*?</table>`).exec(page)?.[0].replaceAll(/<[^>]*>/g, " ") ??
    "";
  // Sent, succeeded, failed, cancelled, not sent, as a fallback, tokens.
  expect(table("Model calls by clients")).toMatch(
    /OpenAI Chat Completions\s+4\s+3\s+1\s+0\s+2\s+0\s+30 \/ 15\s/,
  );
  expect(page).toContain("3 sent with tokens that do not act as an agent.");
  expect(table("Prompts sent to count their tokens")).toMatch(/claude\/any\s+1\s+1\s+0\s+0\s+0\s/);
  expect(page).toContain("1 further count estimated by the gateway: nothing was sent.");
  expect(page).toContain("<li><b>4</b>of them made by clients</li>");
  expect(page).toContain("<li><b>1</b>prompt sent to count its tokens</li>");
  expect(table("Agents")).toMatch(/clerk\s+1\s+\d+\s+1\s+0\s+1\s/);
});

test("a refusal's entry names the dialect, however far the request was read", async () => {
  const denied = (await stage.entries()).filter(({ outcome }) => outcome === "denied");
  expect(denied.map(({ code, detail }) => [code, detail?.dialect])).toEqual([
    ["model_forbidden", "chat_completions"],
    ["validation_failed", "chat_completions"],
    ["not_found", "responses"],
  ]);
});
