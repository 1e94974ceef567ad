import { describe, expect, test } from "bun:test";
import Type from "typebox";
import { type AfterModelCall, type AgentEvent, defineTool, runAgent } from "../../src/agents/index.ts";
import { answers, call, collect, finish, last, only, scripted, text, types } from "./support.ts";

function recording() {
  const calls: AfterModelCall[] = [];
  return { calls, hooks: { afterModelCall: (info: AfterModelCall) => void calls.push(info) } };
}

/** Reads events and aborts after the first one of this type. */
async function abortAt(
  type: AgentEvent["type"],
  controller: AbortController,
  events: AsyncIterable<AgentEvent>,
): Promise<AgentEvent[]> {
  const all: AgentEvent[] = [];
  for await (const event of events) {
    all.push(event);
    // Delayed, so the run is already waiting for its provider or tool.
    if (event.type === type) setTimeout(() => controller.abort(), 1);
  }
  return all;
}

describe("the signal", () => {
  test.each([false, true])("ends an answer at once (provider ignores it: %p)", async (isDeaf) => {
    const { calls, hooks } = recording();
    const controller = new AbortController();
    const model = scripted("a", [[...text("12345"), "hang"]], { isDeaf });
    const other = scripted("b", [answers("no")]);
    const run = runAgent({ model: [model, other], prompt: "1234", signal: controller.signal, hooks });
    const events = await abortAt("output.delta", controller, run);
    const usage = { inputTokens: 1, outputTokens: 2, estimated: true };
    expect(types(events)).toEqual(["step.started", "model.started", "output.delta", "agent.failed"]);
    expect(last(events)).toMatchObject({ code: "cancelled", usage });
    expect(model.aborted).toEqual(isDeaf ? [] : [1]);
    expect(other.calls).toHaveLength(0);
    expect(calls).toHaveLength(1);
    expect(calls[0]).toMatchObject({ status: "cancelled", text: "12345", usage });
  });

  test("ends an unanswered request", async () => {
    const { calls, hooks } = recording();
    const controller = new AbortController();
    const model = { ...scripted("a", []), doStream: () => new Promise<never>(() => {}) };
    const run = runAgent({ model, prompt: "1234", signal: controller.signal, hooks });
    const events = await abortAt("model.started", controller, run);
    expect(last(events)).toMatchObject({ code: "cancelled", usage: { inputTokens: 1, outputTokens: 0 } });
    expect(calls.map(({ status }) => status)).toEqual(["cancelled"]);
  });

  test("that is already aborted prevents the start", async () => {
    const model = scripted("a", [answers("no")]);
    const events = await collect(runAgent({ model, prompt: "?", signal: AbortSignal.abort() }));
    expect(types(events)).toEqual(["agent.failed"]);
    expect(last(events)).toMatchObject({ code: "cancelled", usage: { inputTokens: 0, outputTokens: 0 } });
    expect(model.calls).toHaveLength(0);
  });

  test("reaches a tool; a tool that ignores it is abandoned, and its outcome is unknown", async () => {
    const controller = new AbortController();
    const signals: AbortSignal[] = [];
    const tool = defineTool({
      name: "slow",
      description: "",
      input: Type.Object({}),
      execute(_input, { signal }) {
        signals.push(signal);
        return new Promise(() => {});
      },
    });
    const after: string[] = [];
    const hooks = { afterToolCall: ({ status }: { status: string }) => void after.push(status) };
    const model = scripted("a", [[call("slow", {}, "1"), call("slow", {}, "2"), finish("tool-calls")]]);
    const run = runAgent({ model, prompt: "?", tools: [tool], signal: controller.signal, hooks });
    const events = await abortAt("tool.call", controller, run);
    expect(only(events, "tool.result").map(({ id, status }) => [id, status])).toEqual([["1", "unknown"]]);
    expect(last(events)).toMatchObject({ code: "cancelled" });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(after).toEqual(["unknown"]);
  });

  test("while waiting for an approval keeps the tool from being called", async () => {
    const controller = new AbortController();
    let executed = 0;
    const tool = defineTool({
      name: "t",
      description: "",
      input: Type.Object({}),
      execute: () => ++executed,
    });
    const hooks = {
      async beforeToolCall() {
        controller.abort();
      },
    };
    const model = scripted("a", [[call("t", {}), finish("tool-calls")]]);
    const events = await collect(
      runAgent({ model, prompt: "?", tools: [tool], signal: controller.signal, hooks }),
    );
    expect(executed).toBe(0);
    expect(only(events, "tool.result")[0]?.status).toBe("denied");
    expect(last(events)).toMatchObject({ code: "cancelled" });
  });
});

describe("a reader who leaves", () => {
  test("between events stops the upstream, and the call is recorded", async () => {
    const { calls, hooks } = recording();
    const model = scripted("a", [[...text("1", "2", "3"), "hang"]]);
    for await (const event of runAgent({ model, prompt: "?", hooks })) {
      if (event.type === "output.delta") break;
    }
    expect(model.aborted).toEqual([1]);
    expect(calls.map(({ status, text }) => [status, text])).toEqual([["cancelled", "1"]]);
  });

  test("while waiting for an event stops the upstream as well", async () => {
    const { calls, hooks } = recording();
    const model = scripted("a", [["hang"]]);
    const run = runAgent({ model, prompt: "?", hooks });
    await run.next();
    await run.next();
    const waiting = run.next();
    await Bun.sleep(1);
    await run.return();
    expect((await waiting).value).toMatchObject({ type: "agent.failed", code: "cancelled" });
    expect(model.aborted).toEqual([1]);
    expect(calls).toHaveLength(1);
  });

  test("before the first event has requested nothing", async () => {
    const model = scripted("a", [answers("no")]);
    await runAgent({ model, prompt: "?" }).return();
    expect(model.calls).toHaveLength(0);
  });

  test("is not reported if the hook fails", async () => {
    let times = 0;
    const hooks = {
      afterModelCall() {
        times += 1;
        throw new Error("disk full");
      },
    };
    for await (const event of runAgent({ model: scripted("a", [answers("1")]), prompt: "?", hooks })) {
      if (event.type === "output.delta") break;
    }
    expect(times).toBe(1);
  });
});

test("a finished run leaves no listener on the caller's signal", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...given: Parameters<typeof add>) => {
    listeners += 1;
    add(...given);
  };
  signal.removeEventListener = (...given: Parameters<typeof remove>) => {
    listeners -= 1;
    remove(...given);
  };
  await collect(runAgent({ model: scripted("a", [answers("ok")]), prompt: "?", signal }));
  expect(listeners).toBe(0);
});
