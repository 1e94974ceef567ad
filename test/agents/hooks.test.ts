import { describe, expect, test } from "bun:test";
import Type from "typebox";
import {
  type AfterModelCall,
  AgentDenied,
  defineTool,
  type Hooks,
  runAgent,
} from "../../src/agents/index.ts";
import { answers, call, collect, finish, httpError, last, only, scripted, text, types } from "./support.ts";

function recorder(): { log: string[]; calls: AfterModelCall[]; hooks: Hooks } {
  const log: string[] = [];
  const calls: AfterModelCall[] = [];
  const hooks: Hooks = {
    beforeModelCall: ({ step, model, attempt }) => void log.push(`ask ${step} ${model} ${attempt}`),
    afterModelCall(info) {
      calls.push(info);
      log.push(`asked ${info.step} ${info.model} ${info.attempt} ${info.status}`);
    },
    beforeToolCall: ({ id, tool }) => void log.push(`call ${id} ${tool}`),
    afterToolCall: ({ id, status, dispatched }) => void log.push(`called ${id} ${status} ${dispatched}`),
  };
  return { log, calls, hooks };
}

function counting(name: string) {
  const counter = { executed: 0 };
  const tool = defineTool({
    name,
    description: "",
    input: Type.Object({}),
    execute: () => {
      counter.executed += 1;
      return "done";
    },
  });
  return { counter, tool };
}

test("hooks run in order, each once", async () => {
  const { log, calls, hooks } = recorder();
  const { tool } = counting("t");
  const first = scripted("a", [{ refuse: httpError(500) }, answers("ok")]);
  const second = scripted("b", [
    [...text("hm"), call("t", {}), call("none", {}, "c2"), finish("tool-calls")],
  ]);
  await collect(runAgent({ model: [first, second], prompt: "?", tools: [tool], hooks }));
  expect(log).toEqual([
    "ask 1 test/a 1",
    "asked 1 test/a 1 failed",
    "ask 1 test/b 2",
    "asked 1 test/b 2 succeeded",
    "call c1 t",
    "called c1 succeeded true",
    "called c2 denied false",
    "ask 2 test/a 1",
    "asked 2 test/a 1 succeeded",
  ]);
  expect(calls[0]?.error).toMatchObject({ statusCode: 500 });
  expect(calls[0]?.usage).toEqual({ inputTokens: 0, outputTokens: 0, estimated: true });
  expect(calls[1]).toMatchObject({
    text: "hm",
    toolCalls: [
      { id: "c1", tool: "t", arguments: {} },
      { id: "c2", tool: "none", arguments: {} },
    ],
  });
});

describe("a before-hook that throws", () => {
  test.each([
    [
      "a decision",
      new AgentDenied("credits_exhausted", "The budget is spent"),
      "denied",
      "The budget is spent",
    ],
    ["a fault", new Error("SECRET"), "internal", "The model call could not be prepared."],
  ] as const)("%s means that no model is called", async (_what, error, code, message) => {
    for (const hook of [
      () => Promise.reject(error),
      () => {
        throw error;
      },
    ]) {
      const first = scripted("a", [answers("no")]);
      const second = scripted("b", [answers("no")]);
      let after = 0;
      const hooks = { beforeModelCall: hook, afterModelCall: () => void after++ };
      const events = await collect(runAgent({ model: [first, second], prompt: "?", hooks }));
      expect(types(events)).toEqual(["step.started", "agent.failed"]);
      expect(last(events)).toMatchObject({ code, message, cause: error });
      expect([first.calls.length, second.calls.length, after]).toEqual([0, 0, 0]);
    }
  });

  test("means that no tool is called, and that the call has no result", async () => {
    const { counter, tool } = counting("t");
    const model = scripted("a", [[call("t", {}), finish("tool-calls")]]);
    const beforeToolCall = () => {
      throw new AgentDenied("stopped", "The agent is stopped");
    };
    let after = 0;
    const hooks = { beforeToolCall, afterToolCall: () => void after++ };
    const events = await collect(runAgent({ model, prompt: "?", tools: [tool], hooks }));
    expect(last(events)).toMatchObject({ code: "denied", message: "The agent is stopped" });
    expect(types(events)).not.toContain("tool.result");
    expect([counter.executed, after]).toEqual([0, 0]);
  });
});

describe("an after-hook that throws", () => {
  const fail = () => Promise.reject(new Error("disk full"));

  test("after a model call fails the run before its tools are called", async () => {
    const { counter, tool } = counting("t");
    const model = scripted("a", [[call("t", {}), finish("tool-calls")]]);
    let times = 0;
    const hooks = {
      afterModelCall: () => {
        times += 1;
        return fail();
      },
    };
    const events = await collect(runAgent({ model, prompt: "?", tools: [tool], hooks }));
    expect(last(events)).toMatchObject({ type: "agent.failed", code: "internal" });
    expect([counter.executed, times]).toEqual([0, 1]);
  });

  test("after a tool call fails the run before the next one", async () => {
    const { counter, tool } = counting("t");
    const model = scripted("a", [[call("t", {}, "1"), call("t", {}, "2"), finish("tool-calls")]]);
    const events = await collect(
      runAgent({ model, prompt: "?", tools: [tool], hooks: { afterToolCall: fail } }),
    );
    expect(last(events)).toMatchObject({ type: "agent.failed", code: "internal" });
    expect(counter.executed).toBe(1);
  });
});

describe("a tool is denied", () => {
  test("by the hook, and the model is told why", async () => {
    const { counter, tool } = counting("t");
    const { log, hooks } = recorder();
    const model = scripted("a", [[call("t", {}), finish("tool-calls")], answers("ok")]);
    const events = await collect(
      runAgent({
        model,
        prompt: "?",
        tools: [tool],
        hooks: { ...hooks, beforeToolCall: async () => ({ deny: "not on Fridays" }) },
      }),
    );
    expect(only(events, "tool.result")[0]).toMatchObject({ status: "denied", durationMs: 0 });
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain("not on Fridays");
    expect(log).toContain("called c1 denied false");
    expect(counter.executed).toBe(0);
    expect(last(events)).toMatchObject({ type: "agent.finished" });
  });

  test("by the policy, and is not offered", async () => {
    const { counter, tool } = counting("t");
    const other = counting("other").tool;
    const model = scripted("a", [[call("t", {}), finish("tool-calls")], answers("ok")]);
    const policy = { allowTool: (name: string) => name !== "t" };
    const events = await collect(runAgent({ model, prompt: "?", tools: [tool, other], policy }));
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(["other"]);
    expect(only(events, "tool.result")[0]?.status).toBe("denied");
    expect(counter.executed).toBe(0);
  });
});
