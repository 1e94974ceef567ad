/** Tasks whose models call the tools of a connector. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { addConnector } from "../mcp/support.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { dispatch, ended, ledger, run, type Stage, startStage, unsettled, until } from "../tasks/support.ts";

let stage: Stage;
let upstream: ScriptedMcp;
beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"] } });
  await stage.gateway.agent("worker", { approvals: [] });
});
afterAll(async () => {
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  await stage.stop();
});
beforeEach(async () => {
  if ((await stage.gateway.call("DELETE", "/v1/connectors/up")).status === 204) await upstream.close();
  upstream = startScriptedMcp([
    { name: "add", inputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } },
    "other",
  ]);
  await addConnector(stage.gateway, "up", upstream.url);
});

/** Scripts a model that makes these calls one after another and then answers. */
function script(...calls: readonly [name: string, input: object][]): void {
  stage.upstream.script("a", (_request, index) => {
    const call = calls[index];
    return call ? { toolCalls: [{ name: call[0], arguments: call[1] }] } : { chunks: ["Done."] };
  });
}

const offered = () => {
  const tools = stage.upstream.requests.at(-1)?.body.tools as { function: { name: string } }[] | undefined;
  return (tools ?? []).map((tool) => tool.function.name);
};

describe("nothing is sent:", () => {
  test.each([
    ["arguments of another type", "up__add", { n: "1" }],
    ["arguments that are missing", "up__add", {}],
    ["a tool that the task does not list", "up__other", {}],
    ["a tool of another connector", "vault__search", { query: "x" }],
  ])("%s is denied, and the model is told", async (_, name, input) => {
    script([name, input]);
    const task = await run(stage.gateway, { agent: "worker", tools: ["up.add"] });
    expect(task).toMatchObject({ status: "succeeded", output: "Done." });
    expect(task.tools_called.map(({ status }: { status: string }) => status)).toEqual(["denied"]);
    expect(upstream.calls).toEqual([]);
  });
});

test("an unlisted tool is not offered", async () => {
  script();
  await run(stage.gateway, { agent: "worker", tools: ["up.add"] });
  expect(offered()).toEqual(["up__add"]);
  await run(stage.gateway, { agent: "worker" });
  expect(offered()).toEqual([]);
});

test("a call reaches the upstream once, and is in the task and in the ledger", async () => {
  script(["up__add", { n: 1 }], ["up__add", { n: 2 }]);
  upstream.answer(({ input }) => text(`sum ${String(input.n)}`));
  const task = await run(stage.gateway, { agent: "worker", tools: ["up.add"] });
  expect(upstream.calls).toEqual([
    { name: "add", input: { n: 1 } },
    { name: "add", input: { n: 2 } },
  ]);
  expect(task.tools_called).toMatchObject([
    { tool: "up.add", arguments: { n: 1 }, status: "succeeded" },
    { tool: "up.add", arguments: { n: 2 }, status: "succeeded" },
  ]);
  const told = stage.upstream.requests.at(-1)?.body.messages.filter(({ role }) => role === "tool");
  expect(told?.map(({ content }) => String(content))).toEqual(["sum 1", "sum 2"]);
  const entries = (await ledger(stage.gateway)).filter((entry) => entry.task === task.id && entry.tool);
  expect(entries.map(({ action, phase, tool, outcome }) => [action, phase, tool, outcome])).toEqual([
    ["tool.call", "intent", "up.add", "allowed"],
    ["tool.call", "outcome", "up.add", "succeeded"],
    ["tool.call", "intent", "up.add", "allowed"],
    ["tool.call", "outcome", "up.add", "succeeded"],
  ]);
});

test("a tool that reports a failure has failed, and the model reads why", async () => {
  script(["up__add", { n: 1 }]);
  upstream.answer(() => ({ isError: true, content: [{ type: "text", text: "no such number" }] }));
  const task = await run(stage.gateway, { agent: "worker", tools: ["up.add"] });
  expect(task.tools_called).toMatchObject([{ status: "failed" }]);
  const told = stage.upstream.requests.at(-1)?.body.messages.find(({ role }) => role === "tool");
  expect(String(told?.content)).toContain("no such number");
});

test("a lost upstream fails its call, and the task continues", async () => {
  script(["up__add", { n: 1 }]);
  await upstream.close();
  const task = await run(stage.gateway, { agent: "worker", tools: ["up.add"] });
  expect(task).toMatchObject({ status: "succeeded", tools_called: [{ status: "failed" }] });
});

test("a cancelled task ends the call in flight, and its upstream is notified", async () => {
  script(["up__add", { n: 1 }]);
  upstream.answer(() => new Promise(() => {}));
  const id = await dispatch(stage.gateway, { agent: "worker", tools: ["up.add"] });
  await until(() => upstream.calls.length === 1);
  await stage.gateway.call("POST", `/v1/tasks/${id}/cancel`);
  const task = await ended(stage.gateway, id);
  expect(task.status).toBe("cancelled");
  await until(() => upstream.heard.includes("notifications/cancelled"));
});

describe("a right removed while a task runs is denied at its next call:", () => {
  /** Runs `change` between two calls: while the model is thinking, or during the first call. */
  async function between(change: () => Promise<unknown>, when: "thinking" | "calling"): Promise<void> {
    if (when === "calling") upstream.answer(() => change().then(() => text("changed")));
    stage.upstream.script("a", (_request, index) => {
      if (index > 1) return { chunks: ["Done."] };
      const call = { toolCalls: [{ name: "up__add", arguments: { n: index } }] };
      return index === 1 && when === "thinking" ? { ...call, gate: change().then(() => {}) } : call;
    });
    const task = await run(stage.gateway, { agent: "worker", tools: ["up.add"] });
    expect(task.status).toBe("succeeded");
    expect(task.tools_called).toMatchObject([{ status: "succeeded" }, { status: "denied" }]);
    expect(upstream.calls).toHaveLength(1);
  }

  test("the connector", async () => {
    await between(() => stage.gateway.call("DELETE", "/v1/connectors/up"), "thinking");
    await upstream.close();
  });

  test("the tool, if its upstream no longer offers it", async () => {
    upstream.list(["other"]);
    await between(() => stage.gateway.call("POST", "/v1/connectors/up/refresh"), "thinking");
  });

  test("the agent's right to it, and it is no longer offered either", async () => {
    const tools = (globs: string[]) =>
      stage.gateway.call("PATCH", "/v1/agents/worker", { body: { tools: globs } });
    await between(() => tools(["time.*"]), "calling");
    expect(offered()).toEqual([]);
    await tools(["*"]);
  });
});
