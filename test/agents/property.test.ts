import { expect, test } from "bun:test";
import fc from "fast-check";
import Type from "typebox";
import { defineTool, runAgent } from "../../src/agents/index.ts";
import { call, collect, finish, httpError, only, type Script, scripted, text, textSince } from "./support.ts";

const deltas = fc.array(fc.string({ unit: "binary", maxLength: 4 }), { maxLength: 5 });
const tail = fc.constantFrom<Script>(
  [finish()],
  [finish("length")],
  [finish("error")],
  [],
  [{ type: "error", error: httpError(500) }],
  [{ type: "error", error: httpError(400) }],
  [{ type: "break", error: new Error("SECRET") }],
  [call("t", {}), finish("tool-calls")],
  [call("t", "{bad"), finish("tool-calls")],
  [call("forbidden", {}), finish("stop")],
  [call("t", {})],
);
const script = fc.oneof(
  fc.tuple(deltas, tail).map(([said, end]): Script => ("refuse" in end ? end : [...text(...said), ...end])),
  fc.constantFrom(429, 503, 401, 422).map((status): Script => ({ refuse: httpError(status) })),
);
const models = fc.array(
  fc.record({ scripts: fc.array(script, { minLength: 1, maxLength: 4 }), allowed: fc.boolean() }),
  {
    minLength: 1,
    maxLength: 4,
  },
);

test("whatever the models do, a run has one final event, consistent text, no forbidden call and paired hooks", async () => {
  await fc.assert(
    fc.asyncProperty(models, async (given) => {
      const route = given.map(({ scripts }, index) => scripted(`${index}`, scripts));
      const executed: string[] = [];
      const tool = (name: string) =>
        defineTool({ name, description: "", input: Type.Object({}), execute: () => executed.push(name) });
      const open = new Set<string>();
      const close = (call: string): void => expect(open.delete(call)).toBe(true);
      const events = await collect(
        runAgent({
          model: route,
          prompt: "?",
          tools: [tool("t"), tool("forbidden")],
          maxSteps: 4,
          policy: {
            allowModel: (id) => given[Number(id.slice("test/".length))]?.allowed ?? false,
            allowTool: (name) => name !== "forbidden",
          },
          hooks: {
            beforeModelCall: ({ step, attempt }) => void open.add(`model ${step} ${attempt}`),
            afterModelCall: ({ step, attempt }) => close(`model ${step} ${attempt}`),
            beforeToolCall: ({ id }) => void open.add(`tool ${id}`),
            afterToolCall: ({ id, dispatched }) => (dispatched ? close(`tool ${id}`) : undefined),
          },
        }),
      );
      const ends = events.filter(({ type }) => type === "agent.finished" || type === "agent.failed");
      expect(ends).toEqual(events.slice(-1));
      for (const { output } of only(events, "agent.finished")) expect(textSince(events)).toBe(output);
      for (const [index, { allowed }] of given.entries()) {
        if (!allowed) expect(route[index]?.calls).toHaveLength(0);
      }
      expect(executed).not.toContain("forbidden");
      expect([...open]).toEqual([]);
      expect(only(events, "tool.call").map(({ id }) => id)).toEqual(
        only(events, "tool.result").map(({ id }) => id),
      );
      expect(new Set(only(events, "tool.call").map(({ id }) => id)).size).toBe(
        only(events, "tool.call").length,
      );
      expect(JSON.stringify(events)).not.toContain("SECRET");
    }),
    { numRuns: 300 },
  );
});
