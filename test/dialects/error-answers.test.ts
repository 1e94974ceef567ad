/** Providers that send errors with status 200, which are not passed on as answers. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway } from "../support/gateway.ts";

/** Known to the provider. A client must never see it. */
const KEY = "sk-upstream-key";
const ERROR = { message: `the key ${KEY} is over its limit`, type: "insufficient_quota" };
const USER = [{ role: "user", content: "hi" }];

let gateway: Awaited<ReturnType<typeof startGateway>>;
/** The provider's answer to each model. */
const answers = new Map<string, { readonly body: string; readonly type?: string }>();
let provider: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  provider = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { model } = (await request.json()) as { model: string };
      const { body = "{}", type = "application/json" } = answers.get(model) ?? {};
      return new Response(body, { headers: { "content-type": type } });
    },
  });
  const url = `http://127.0.0.1:${provider.port}/v1`;
  gateway = await startGateway({
    yaml: `providers:
  open: { kind: openai, base_url: "${url}", api_key: ${KEY} }
  claude: { kind: anthropic, base_url: "${url}", api_key: ${KEY} }
tiers:
  1: { models: [open/failing, open/working, claude/failing] }
`,
  });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop(true);
});

const post = (path: string, body: object) => gateway.call("POST", path, { body });
const DOORS: [path: string, request: object, error: object, provider?: string][] = [
  ["/v1/chat/completions", { messages: USER }, { error: ERROR }],
  ["/v1/responses", { input: "hi" }, { error: ERROR }],
  ["/v1/responses", { input: "hi" }, { id: "resp_1", object: "response", status: "failed", error: ERROR }],
  ["/v1/messages", { messages: USER, max_tokens: 9 }, { type: "error", error: ERROR }, "claude"],
  ["/v1/messages/count_tokens", { messages: USER }, { type: "error", error: ERROR }, "claude"],
  ["/v1/embeddings", { input: "hi" }, { error: ERROR }],
];

describe.each(DOORS)("%s", (path, request, error, name = "open") => {
  const model = `${name}/failing`;

  test("an error with status 200 is a failed call, and is not shown", async () => {
    answers.set("failing", { body: JSON.stringify(error) });
    const answer = await post(path, { ...request, model });
    expect(answer.status).toBe(502);
    expect(JSON.stringify(answer.body)).not.toContain(KEY);
    const { data } = (await gateway.call("GET", "/v1/ledger?limit=50&order=desc")).body;
    const [outcome] = data.filter(({ phase }: { phase: string }) => phase === "outcome");
    expect(outcome).toMatchObject({ outcome: "failed", code: "error", model });
  });

  test("events that nobody requested are a failed call, and are not shown", async () => {
    answers.set("failing", { body: `data: ${JSON.stringify(error)}\n\n`, type: "text/event-stream" });
    const answer = await post(path, { ...request, model });
    expect(answer.status).toBe(502);
    expect(JSON.stringify(answer.body)).not.toContain(KEY);
  });
});

test("the tier's next model is tried", async () => {
  answers.set("failing", { body: JSON.stringify({ error: ERROR }) });
  const message = { role: "assistant", content: "from the second" };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  answers.set("working", {
    body: JSON.stringify({ id: "c", object: "chat.completion", choices, error: null }),
  });
  const { status, body } = await post("/v1/chat/completions", { model: "tier:1", messages: USER });
  expect([status, body.choices?.[0]?.message.content]).toEqual([200, "from the second"]);
});

test.each([null, "", false])("an answer whose error is %p is no error", async (error) => {
  const choices = [{ index: 0, message: { role: "assistant", content: "fine" }, finish_reason: "stop" }];
  answers.set("working", { body: JSON.stringify({ id: "c", object: "chat.completion", choices, error }) });
  const { status, body } = await post("/v1/chat/completions", { model: "open/working", messages: USER });
  expect([status, body.choices?.[0]?.message.content]).toEqual([200, "fine"]);
});
