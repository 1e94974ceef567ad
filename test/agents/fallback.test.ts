import { describe, expect, test } from "bun:test";
import { APICallError } from "@ai-sdk/provider";
import Type from "typebox";
import { defineTool, isRetryable, runAgent } from "../../src/agents/index.ts";
import {
  answers,
  call,
  collect,
  finish,
  httpError,
  last,
  only,
  scripted,
  text,
  textSince,
  types,
} from "./support.ts";

const refused = Object.assign(new Error("connect SECRET"), { code: "ECONNREFUSED" });
const timeout = new DOMException("SECRET", "TimeoutError");

describe("another model is tried", () => {
  const failures: [what: string, script: Parameters<typeof scripted>[1][number], reason: string][] = [
    ["when the connection is refused", { refuse: refused }, "connection"],
    ["when an underlying cause shows it", { refuse: new Error("x", { cause: refused }) }, "connection"],
    ["after a timeout", { refuse: timeout }, "timeout"],
    ["after 408", { refuse: httpError(408) }, "timeout"],
    ["after 429", { refuse: httpError(429) }, "rate_limited"],
    ["after 401", { refuse: httpError(401) }, "http_401"],
    ["after 404", { refuse: httpError(404) }, "http_404"],
    ["after 500", { refuse: httpError(500) }, "http_500"],
    ["after an unknown error", { refuse: "SECRET" }, "error"],
    ["after an error part", [{ type: "error", error: { message: "SECRET", code: 503 } }], "http_503"],
    ["when the stream breaks", [{ type: "break", error: refused }], "connection"],
    ["when the stream ends without a finish", [], "cut"],
    ["when the model finishes with an error", [finish("error")], "error"],
    ["when the model is interrupted", [finish("interrupted")], "interrupted"],
  ];
  test.each(failures)("%s", async (_what, script, reason) => {
    const events = await collect(
      runAgent({ model: [scripted("a", [script]), scripted("b", [answers("ok")])], prompt: "?" }),
    );
    expect(types(events)).toEqual([
      "step.started",
      "model.started",
      "model.fallback",
      "model.started",
      "output.delta",
      "step.finished",
      "agent.finished",
    ]);
    expect(only(events, "model.fallback")).toEqual([
      { type: "model.fallback", from: "test/a", to: "test/b", reason },
    ]);
    expect(JSON.stringify(events)).not.toContain("SECRET");
  });

  test("in the middle of an answer, and the text so far is discarded", async () => {
    const first = scripted("a", [[...text("half an ans"), { type: "break", error: refused }]]);
    const second = scripted("b", [answers("whole")]);
    const events = await collect(
      runAgent({ model: [first, { id: "ollama/b", model: second }], prompt: "1234" }),
    );
    expect(types(events).slice(2, 6)).toEqual([
      "output.delta",
      "output.reset",
      "model.fallback",
      "model.started",
    ]);
    expect(textSince(events)).toBe("whole");
    // The failed attempt is charged by estimate: 4 and 11 bytes.
    expect(last(events)).toMatchObject({
      type: "agent.finished",
      output: "whole",
      usage: { inputTokens: 11, outputTokens: 8, estimated: true },
    });
    expect(only(events, "step.finished")[0]).toMatchObject({ model: "ollama/b" });
  });

  test("after tool calls without a finish reason, which are not made", async () => {
    let executed = 0;
    const tool = defineTool({
      name: "t",
      description: "",
      input: Type.Object({}),
      execute: () => ++executed,
    });
    const model = [scripted("a", [[call("t", {})]]), scripted("b", [answers("ok")])];
    const events = await collect(runAgent({ model, prompt: "?", tools: [tool] }));
    expect(executed).toBe(0);
    expect(last(events)).toMatchObject({ type: "agent.finished", output: "ok" });
  });

  test("and the first model again in the next step", async () => {
    const tool = defineTool({ name: "t", description: "", input: Type.Object({}), execute: () => "x" });
    const first = scripted("a", [{ refuse: httpError(503) }, answers("ok")]);
    const second = scripted("b", [[call("t", {}), finish("tool-calls")]]);
    const events = await collect(runAgent({ model: [first, second], prompt: "?", tools: [tool] }));
    expect(only(events, "step.finished").map(({ model }) => model)).toEqual(["test/b", "test/a"]);
  });
});

describe("no other model is tried", () => {
  test.each([400, 402, 413, 422])("after %d", async (status) => {
    const second = scripted("b", [answers("ok")]);
    const events = await collect(
      runAgent({ model: [scripted("a", [{ refuse: httpError(status) }]), second], prompt: "?" }),
    );
    expect(second.calls).toHaveLength(0);
    expect(types(events)).toEqual(["step.started", "model.started", "agent.failed"]);
    expect(last(events)).toMatchObject({
      code: "model_unavailable",
      message: `No model answered: test/a (http_${status}).`,
    });
    expect(JSON.stringify(events)).not.toContain("SECRET");
  });
});

describe("when all fail", () => {
  test("the code is timeout if each timed out", async () => {
    const model = [
      scripted("a", [{ refuse: timeout }]),
      scripted("b", [[{ type: "error", error: timeout }]]),
    ];
    expect(last(await collect(runAgent({ model, prompt: "?" })))).toMatchObject({ code: "timeout" });
  });

  test("the code is model_unavailable if any failed otherwise, and the errors are only in the cause", async () => {
    const error = httpError(500);
    const model = [scripted("a", [{ refuse: timeout }]), scripted("b", [{ refuse: error }])];
    const events = await collect(runAgent({ model, prompt: "?" }));
    const [failed] = only(events, "agent.failed");
    expect(failed?.code).toBe("model_unavailable");
    expect(failed?.cause).toBeInstanceOf(AggregateError);
    expect(Object.keys(failed ?? {})).not.toContain("cause");
    expect(failed?.usage).toEqual({ inputTokens: 0, outputTokens: 0, estimated: true });
  });
});

describe("an attempt that fails before its first word costs", () => {
  const usageAfter = async (first: Parameters<typeof scripted>[1]) => {
    const model = [scripted("a", first), scripted("b", [{ refuse: httpError(500) }])];
    const [failed] = only(await collect(runAgent({ model, prompt: "12345678" })), "agent.failed");
    return failed?.usage;
  };

  test.each([
    ["the provider cannot be reached", { refuse: Object.assign(new Error(), { code: "ECONNREFUSED" }) }],
    ["it never begins to answer", { refuse: timeout }],
    ["it reports the failure itself", [{ type: "error" as const, error: httpError(500) }]],
  ])("nothing if %s", async (_name, script) => {
    expect(await usageAfter([script])).toEqual({ inputTokens: 0, outputTokens: 0, estimated: true });
  });

  test.each([
    ["the stream falls silent", [{ type: "break" as const, error: timeout }]],
    ["the stream is cut", []],
    [
      "the connection breaks",
      [{ type: "break" as const, error: Object.assign(new Error(), { code: "ECONNRESET" }) }],
    ],
  ])("what was sent if %s", async (_name, script) => {
    expect(await usageAfter([script])).toEqual({ inputTokens: 2, outputTokens: 0, estimated: true });
  });
});

test("a forbidden model is skipped, and if all are forbidden the run is denied", async () => {
  const first = scripted("a", [answers("forbidden")]);
  const second = scripted("b", [answers("ok")]);
  const policy = { allowModel: (id: string) => id === "test/b" };
  const events = await collect(runAgent({ model: [first, second], prompt: "?", policy }));
  expect(types(events)).not.toContain("model.fallback");
  expect(last(events)).toMatchObject({ output: "ok" });
  const denied = await collect(runAgent({ model: first, prompt: "?", policy }));
  expect(last(denied)).toMatchObject({ type: "agent.failed", code: "denied" });
  expect(first.calls).toHaveLength(0);
});

test("isRetryable distinguishes the model's faults from the request's", () => {
  const status = (statusCode: number) => Object.assign(new Error(), { statusCode });
  for (const code of [401, 403, 404, 408, 409, 425, 429, 500, 503, 529])
    expect(isRetryable(status(code))).toBe(true);
  for (const code of [400, 402, 405, 410, 413, 415, 422, 451]) expect(isRetryable(status(code))).toBe(false);
  expect(isRetryable(new APICallError({ message: "", url: "", requestBodyValues: {} }))).toBe(true);
  const cyclic: { cause?: unknown } = {};
  cyclic.cause = cyclic;
  expect(isRetryable(cyclic)).toBe(true);
});
