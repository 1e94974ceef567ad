/** A task's conversation is bounded: a task whose tools answer without limit ends, with a code of the contract. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { addConnector } from "../mcp/support.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { gate, run, type Stage, startStage } from "./support.ts";

setDefaultTimeout(60_000);

const READ = {
  name: "read",
  inputSchema: { type: "object" },
  annotations: { readOnlyHint: true },
};
/** The number of characters of a result that a model is shown. */
const PAGE = "x".repeat(100_000);

let stage: Stage;
let tools: ScriptedMcp;
beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"] } });
  tools = startScriptedMcp([READ]);
  tools.answer(() => ({ content: [{ type: "text", text: PAGE }] }));
  await addConnector(stage.gateway, "up", tools.url);
  await stage.gateway.agent("reader", { max_steps: 1_000 });
});
afterAll(async () => {
  await stage.stop();
  await tools.close();
});

async function reading(callsOfStep: number) {
  stage.upstream.script("a", () => ({
    toolCalls: Array.from({ length: callsOfStep }, (_, index) => ({
      id: `c${index}`,
      name: "up__read",
      arguments: {},
    })),
  }));
  const asked = stage.upstream.requests.length;
  const task = await run(stage.gateway, { agent: "reader", tools: ["up.read"] });
  return { task, steps: stage.upstream.requests.length - asked };
}

test("a task whose tools answer more than 4 MiB in one step ends as tool_loop_limit", async () => {
  const { task, steps } = await reading(128);
  expect(task).toMatchObject({
    status: "failed",
    error: { code: "tool_loop_limit", message: "The tool results of one step exceed 4194304 bytes." },
  });
  expect([steps, task.tools_called.length]).toEqual([1, 42]);
});

test("a task whose conversation grows to more than 16 MiB ends as tool_loop_limit", async () => {
  const { task, steps } = await reading(32);
  expect(task).toMatchObject({
    status: "failed",
    error: { code: "tool_loop_limit", message: "The conversation exceeds 16777216 bytes." },
  });
  expect(steps).toBe(6);
});

test("the longest prompt with the longest instructions is sent", async () => {
  await stage.gateway.agent("longest", { instructions: "\u0001".repeat(100_000) });
  stage.upstream.script("a", { chunks: ["ok"] });
  const task = await run(stage.gateway, { agent: "longest", prompt: "\u0001".repeat(1_000_000) });
  expect(task).toMatchObject({ status: "succeeded", output: "ok" });
});

test("tasks whose conversations are too long in total end as tool_loop_limit, and the others continue", async () => {
  const calls = Array.from({ length: 40 }, (_, index) => ({
    id: `c${index}`,
    name: "up__read",
    arguments: {},
  }));
  const hanging = gate();
  stage.upstream.script("a", ({ body }) => {
    const steps = body.messages.filter(({ role }) => role === "assistant").length;
    return steps < 3 ? { toolCalls: calls } : { chunks: ["ok"], gate: hanging.opened };
  });
  // Each keeps 12 million characters, and 128 Mi in total may be in memory. None succeeds before the gate is opened.
  const tasks = Array.from({ length: 14 }, () => run(stage.gateway, { agent: "reader", tools: ["up.read"] }));
  const full = {
    status: "failed",
    error: {
      code: "tool_loop_limit",
      message: "The workspace's conversations in progress are too long in total.",
    },
  };
  expect(await Promise.race(tasks)).toMatchObject(full);
  hanging.open();
  const all = await Promise.all(tasks);
  const failed = all.filter(({ status }) => status === "failed");
  for (const task of failed) expect(task).toMatchObject(full);
  expect(failed.length).toBeLessThan(7);
  expect(all.filter(({ status, output }) => status === "succeeded" && output === "ok")).toHaveLength(
    14 - failed.length,
  );
});
