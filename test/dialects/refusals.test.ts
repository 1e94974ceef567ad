/** Model calls that are refused: nothing reaches the provider, and each refusal is in the ledger. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { CallOptions } from "../support/gateway.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

let stage: DialectStage;
let open: string;
let reader: string;
beforeAll(async () => {
  stage = await openDialectStage();
  open = await stage.gateway.token({ scopes: ["models:call"] });
  reader = await stage.gateway.token({ scopes: ["tasks:write", "agents:read"] });
  await stage.gateway.agent("halted");
  await stage.gateway.call("POST", "/v1/agents/halted/stop");
});
afterAll(() => stage.stop());

const MESSAGES = [{ role: "user", content: "hi" }];
const body = (model: unknown, more: object = {}) => ({ model, messages: MESSAGES, ...more });

type Refused = [name: string, status: number, code: string, options: () => CallOptions];
const REFUSED: Refused[] = [
  ["no token", 401, "unauthenticated", () => ({ token: null, body: body("gpt-5") })],
  ["an unknown token", 401, "invalid_token", () => ({ token: `gth_${"a".repeat(49)}`, body: body("gpt-5") })],
  [
    "an unknown x-api-key",
    401,
    "invalid_token",
    () => ({ token: null, headers: { "x-api-key": "sk-ant-1" }, body: body("gpt-5") }),
  ],
  ["a token without the scope", 403, "scope_missing", () => ({ token: reader, body: body("gpt-5") })],
  [
    "a different agent from the token's",
    403,
    "agent_forbidden",
    () => ({ token: stage.clerk, headers: { "gatehouse-agent": "halted" }, body: body("gpt-5") }),
  ],
  [
    "an agent named without the scope for it",
    403,
    "scope_missing",
    () => ({ token: open, headers: { "gatehouse-agent": "clerk" }, body: body("gpt-5") }),
  ],
  [
    "an agent that does not exist",
    404,
    "agent_not_found",
    () => ({ headers: { "gatehouse-agent": "nobody" }, body: body("gpt-5") }),
  ],
  [
    "an agent that is stopped",
    409,
    "agent_stopped",
    () => ({ headers: { "gatehouse-agent": "halted" }, body: body("gpt-5") }),
  ],
  ["an empty body", 400, "invalid_json", () => ({ raw: "" })],
  ["a body that is not JSON", 400, "invalid_json", () => ({ raw: "{" })],
  ["a body that is not an object", 400, "invalid_json", () => ({ raw: '["model"]' })],
  [
    "a model that is named twice",
    400,
    "invalid_json",
    () => ({ raw: '{"model":"up/a","mod\\u0065l":"up/b"}' }),
  ],
  ["no model", 422, "validation_failed", () => ({ body: { messages: MESSAGES } })],
  ["a model that is not a text", 422, "validation_failed", () => ({ body: body(7) })],
  [
    "stream that is neither true nor false",
    422,
    "validation_failed",
    () => ({ body: body("gpt-5", { stream: 1 }) }),
  ],
  [
    "more answers than any provider supports",
    422,
    "validation_failed",
    () => ({ body: body("gpt-5", { n: 129 }) }),
  ],
  [
    "the greatest number of answers",
    422,
    "validation_failed",
    () => ({ body: body("gpt-5", { n: Number.MAX_SAFE_INTEGER }) }),
  ],
  [
    "a number of answers beyond integers",
    422,
    "validation_failed",
    () => ({ body: body("gpt-5", { n: 1e300 }) }),
  ],
  ["no answer", 422, "validation_failed", () => ({ body: body("gpt-5", { n: 0 }) })],
  [
    "a number of answers that is a text",
    422,
    "validation_failed",
    () => ({ body: body("gpt-5", { n: "2" }) }),
  ],
  [
    "a number of answers that occurs twice",
    400,
    "invalid_json",
    () => ({ raw: '{"model":"up/a","n":128,"n":1}' }),
  ],
  [
    "a limit that occurs twice",
    400,
    "invalid_json",
    () => ({ raw: '{"model":"up/a","max_tokens":100000,"max_tokens":1}' }),
  ],
  ["an unknown model", 404, "model_not_found", () => ({ body: body("nothing") })],
  ["an unknown provider", 404, "model_not_found", () => ({ body: body("nobody/gpt-5") })],
  ["a name that would leave its URL", 404, "model_not_found", () => ({ body: body("up/../admin") })],
  [
    "a model that the policy denies",
    403,
    "model_forbidden",
    () => ({ token: stage.clerk, body: body("up/never-1") }),
  ],
  [
    "a model of a forbidden tier",
    403,
    "model_forbidden",
    () => ({ token: stage.clerk, body: body("up/large") }),
  ],
  ["a forbidden tier", 403, "tier_forbidden", () => ({ token: stage.clerk, body: body("tier:2") })],
  ["an alias to a forbidden tier", 403, "tier_forbidden", () => ({ token: stage.clerk, body: body("best") })],
  [
    "a field that exists only in another dialect",
    400,
    "unsupported_parameter",
    () => ({ body: body("tier:3", { logprobs: true }) }),
  ],
];

describe("a call is refused, in OpenAI's format,", () => {
  test.each(REFUSED)("with %s", async (_, status, code, options) => {
    const before = stage.upstream.requests.length;
    const answer = await stage.gateway.call("POST", "/v1/chat/completions", options());
    expect([answer.status, answer.body.error?.code]).toEqual([status, code]);
    expect(answer.body.error).toEqual({
      message: expect.any(String),
      type: expect.any(String),
      param: answer.body.error.param,
      code,
    });
    expect(answer.headers.get("gatehouse-code")).toBe(code);
    expect(answer.headers.get("x-request-id")).toBe(answer.headers.get("gatehouse-request-id"));
    expect(stage.upstream.requests.length).toBe(before);
    if (status === 401) return;
    const seq = Number(answer.headers.get("gatehouse-ledger"));
    const entry = (await stage.entries()).find((each) => each.seq === seq);
    expect(entry).toMatchObject({ outcome: "denied", code });
  });
});

test("a spent budget refuses a priced model, and OpenAI's SDKs do not retry the request", async () => {
  await stage.gateway.agent("poor", { budget: { credits_per_day: 0 } });
  const answer = await stage.gateway.call("POST", "/v1/chat/completions", {
    headers: { "gatehouse-agent": "poor" },
    body: body("up/priced"),
  });
  expect([answer.status, answer.body.error.code]).toEqual([402, "credits_exhausted"]);
  expect(answer.headers.get("x-should-retry")).toBe("false");
});

test("requests count against the limit, streams do not", async () => {
  const whole = await stage.gateway.call("POST", "/v1/chat/completions", { body: body("gpt-5") });
  expect(whole.headers.get("ratelimit-policy")).toContain("requests");
  const stream = await stage.gateway.call("POST", "/v1/chat/completions", {
    body: body("gpt-5", { stream: true }),
  });
  expect([stream.status, stream.headers.get("ratelimit-policy")]).toEqual([200, null]);
});
