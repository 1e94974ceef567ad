/** What is refused before anything reaches a provider, in Anthropic's format. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { type MessagesStage, message, openMessagesStage, USER } from "./messages-support.ts";

let stage: MessagesStage;
let reader = "";
let poor = "";
beforeAll(async () => {
  stage = await openMessagesStage();
  reader = await stage.gateway.token({ scopes: ["tasks:read"] });
  await stage.gateway.agent("poor", { budget: { credits_per_day: 0 } });
  poor = await stage.gateway.token({ agent: "poor" });
});
afterAll(() => stage.stop());

const UNKNOWN = `gth_${"x".repeat(43)}`;
const asked = (model: string) => JSON.stringify({ model, max_tokens: 10, messages: USER });

const PATHS = ["/v1/messages", "/v1/messages/count_tokens"];

interface Refused {
  readonly body: string;
  readonly token?: string | null;
  readonly headers?: Record<string, string>;
}
type Case = [name: string, request: () => Refused, status: number, code: string, type: string];
const CASES: Case[] = [
  [
    "no token",
    () => ({ body: asked("tier:1"), token: null }),
    401,
    "unauthenticated",
    "authentication_error",
  ],
  [
    "an unknown bearer",
    () => ({ body: asked("tier:1"), token: UNKNOWN }),
    401,
    "invalid_token",
    "authentication_error",
  ],
  [
    "an unknown x-api-key",
    () => ({ body: asked("tier:1"), token: null, headers: { "x-api-key": UNKNOWN } }),
    401,
    "invalid_token",
    "authentication_error",
  ],
  [
    "a missing scope",
    () => ({ body: asked("tier:1"), token: reader }),
    403,
    "scope_missing",
    "permission_error",
  ],
  [
    "a forbidden model",
    () => ({ body: asked("claude/never-1") }),
    403,
    "model_forbidden",
    "permission_error",
  ],
  ["a forbidden tier", () => ({ body: asked("tier:2") }), 403, "tier_forbidden", "permission_error"],
  [
    "a model of a forbidden tier",
    () => ({ body: asked("claude/large") }),
    403,
    "model_forbidden",
    "permission_error",
  ],
  ["an unknown model", () => ({ body: asked("nobody/x") }), 404, "model_not_found", "not_found_error"],
  [
    "another agent",
    () => ({ body: asked("tier:1"), headers: { "gatehouse-agent": "poor" } }),
    403,
    "agent_forbidden",
    "permission_error",
  ],
  [
    "a field that would not reach a provider of another kind",
    () => ({ body: asked("tier:3").replace("{", '{"top_k":5,') }),
    400,
    "unsupported_parameter",
    "invalid_request_error",
  ],
  ["no model", () => ({ body: '{"messages":[]}' }), 422, "validation_failed", "invalid_request_error"],
  [
    "stream as a text",
    () => ({ body: '{"model":"tier:1","stream":"yes"}' }),
    422,
    "validation_failed",
    "invalid_request_error",
  ],
  [
    "a model named twice",
    () => ({ body: '{"model":"claude/never","m\\u006fdel":"tier:1"}' }),
    400,
    "invalid_json",
    "invalid_request_error",
  ],
  ["no JSON", () => ({ body: "{" }), 400, "invalid_json", "invalid_request_error"],
  ["a list", () => ({ body: "[]" }), 400, "invalid_json", "invalid_request_error"],
  [
    "deep JSON",
    () => ({ body: `{"model":"tier:1","a":${"[".repeat(101)}${"]".repeat(101)}}` }),
    400,
    "nested_too_deep",
    "invalid_request_error",
  ],
  [
    "a body of 11 MiB",
    () => ({ body: `{"model":"tier:1","a":"${"x".repeat(11 << 20)}"}` }),
    413,
    "body_too_large",
    "request_too_large",
  ],
  [
    "a spent budget",
    () => ({ body: asked("claude/priced"), token: poor }),
    402,
    "credits_exhausted",
    "billing_error",
  ],
];

for (const path of PATHS) {
  const isCount = path.endsWith("count_tokens");
  // Counting costs nothing, and what another kind of provider cannot count is estimated.
  const cases = CASES.filter(([name]) => !isCount || !/budget|kind/.test(name));
  describe(`POST ${path} refuses`, () => {
    test.each(cases)("%s", async (_, request, status, code, type) => {
      const { body, ...options } = request();
      const before = stage.upstream.requests.length;
      const { response, bytes } = await stage.post(body, { path, ...options });
      const told = JSON.parse(bytes.toString());
      expect([response.status, response.headers.get("gatehouse-code")]).toEqual([status, code]);
      expect(told).toMatchObject({ type: "error", error: { type, message: expect.any(String) } });
      expect(told.request_id).toBe(response.headers.get("request-id"));
      expect(response.headers.get("x-should-retry")).toBe(status === 402 ? "false" : null);
      expect(stage.upstream.requests).toHaveLength(before);
      if (status === 401) return;
      const [entry, ...more] = await stage.entriesOf(response, isCount ? "model.count" : "model.call");
      expect(entry).toMatchObject({ phase: "single", code });
      expect(more).toEqual([]);
    });

    test("an unknown parameter of the query, and does not assume max_tokens", async () => {
      const refused = await stage.post(asked("tier:1"), { path: `${path}?key=1` });
      expect([refused.response.status, refused.response.headers.get("gatehouse-code")]).toEqual([
        422,
        "validation_failed",
      ]);
      stage.upstream.script("first", { message: message([], {}) });
      const passed = await stage.post(JSON.stringify({ model: "tier:1", messages: USER }), { path });
      expect(passed.response.status).toBe(200);
    });
  });
}

test("a stopped agent is refused, and the client does not retry", async () => {
  await stage.gateway.agent("halted");
  const token = await stage.gateway.token({ agent: "halted" });
  await stage.gateway.call("POST", "/v1/agents/halted/stop");
  for (const path of PATHS) {
    const { response, bytes } = await stage.post(asked("tier:1"), { path, token });
    expect([response.status, response.headers.get("x-should-retry")]).toEqual([409, "false"]);
    expect(JSON.parse(bytes.toString()).error.type).toBe("conflict_error");
  }
});

test("Anthropic's client throws its own errors, and its key may be in either header", async () => {
  stage.upstream.script("first", { message: message([], { input_tokens: 1, output_tokens: 1 }) });
  const request = { model: "tier:1", max_tokens: 10, messages: USER };
  const thrownBy = (key: string, model = "tier:1") =>
    stage
      .client(key)
      .messages.create({ ...request, model })
      .catch((error: unknown) => error);
  expect(await thrownBy(UNKNOWN)).toBeInstanceOf(Anthropic.AuthenticationError);
  expect(await thrownBy(reader)).toBeInstanceOf(Anthropic.PermissionDeniedError);
  expect(await thrownBy(stage.clerk, "nobody/x")).toBeInstanceOf(Anthropic.NotFoundError);
  const { response } = await stage.post(JSON.stringify(request), {
    token: null,
    headers: { "x-api-key": stage.clerk },
  });
  expect(response.status).toBe(200);
});
