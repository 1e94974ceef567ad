/** A task's conversation is bounded: one whose tools answer without measure ends, with a code of the contract. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { addConnector } from "../mcp/support.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { run, type Stage, startStage } from "./support.ts";

setDefaultTimeout(60_000);

const READ = {
  name: "read",
  inputSchema: { type: "object" },
  annotations: { readOnlyHint: true },
};
/** As many characters as a model is shown of a result. */
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
