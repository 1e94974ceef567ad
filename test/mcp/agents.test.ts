/** A workspace's agents, offered as tools. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dispatch, held, ledger, run, type Stage, startStage, unsettled, until } from "../tasks/support.ts";
import { connect, isMessage, request, watch } from "./support.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"], 2: ["b"] } });
  await stage.gateway.agent("first-line", { description: "Answers customers." });
  await stage.gateway.agent("second", { tools: ["time.*"] });
});
afterAll(() => stage.stop());

const agentTools = async (request: object) => {
  const client = await connect(stage.gateway, { token: await stage.gateway.token(request) });
  return (await client.toolNames()).filter((name) => name.startsWith("agents__"));
};

describe("which agents a caller sees", () => {
  test.each([
    ["without tasks:write, none", { scopes: ["tasks:read", "agents:read", "tools:*"] }, []],
    ["an agent's token without tasks:write, none", { agent: "second", scopes: ["tools:*"] }, []],
    ["with tasks:write, all", { scopes: ["tasks:write"] }, ["agents__first_line", "agents__second"]],
    ["an administrator, all", { scopes: ["admin"] }, ["agents__first_line", "agents__second"]],
    ["an agent's token, only its own", { agent: "second" }, ["agents__second"]],
  ])("%s", async (_, token, expected) => {
    expect(await agentTools(token)).toEqual(expected);
  });
});

describe("refused, and nothing runs:", () => {
  test.each([
    ["a token without tasks:write", { scopes: ["tools:*"] }, "agents__second", "scope_missing", -32_003],
    ["another agent's token", { agent: "first-line" }, "agents__second", "agent_forbidden", -32_003],
    ["an agent that does not exist", { scopes: ["admin"] }, "agents.nobody", "agent_not_found", -32_602],
    ["another case", { scopes: ["admin"] }, "agents.Second", "agent_not_found", -32_602],
  ])("%s", async (_, token, name, code, rpc) => {
    const client = await connect(stage.gateway, { token: await stage.gateway.token(token) });
    const before = stage.upstream.requests.length;
    const refusal = await client.refusal("tools/call", { name, arguments: { prompt: "hi" } });
    expect(refusal).toMatchObject({ code: rpc, data: { code } });
    expect(stage.upstream.requests.length).toBe(before);
    const denied = (await ledger(stage.gateway)).filter(({ outcome }) => outcome === "denied").at(-1);
    expect(denied).toMatchObject({ action: "task.dispatch", code, channel: "mcp" });
  });

  test.each([[{}], [{ prompt: "" }], [{ prompt: "x", tier: 0 }], [{ prompt: "x", tools: ["time.now"] }]])(
    "the arguments %j, which is told to the model and recorded",
    async (input) => {
      const client = await connect(stage.gateway);
      const answer = await client.call("agents__second", input);
      expect(answer.isError).toBe(true);
      const entry = await stage.gateway.call("GET", `/v1/ledger/${answer._meta["gatehouse/ledger"]}`);
      expect(entry.body).toMatchObject({
        action: "task.dispatch",
        outcome: "denied",
        code: "invalid_arguments",
      });
    },
  );

  test("a stopped agent", async () => {
    await stage.gateway.agent("stopped");
    await stage.gateway.call("POST", "/v1/agents/stopped/stop");
    const client = await connect(stage.gateway);
    const refusal = await client.refusal("tools/call", {
      name: "agents__stopped",
      arguments: { prompt: "x" },
    });
    expect(refusal.data.code).toBe("agent_stopped");
  });
});

test("an agent answers with its output, and its work is an ordinary task", async () => {
  stage.upstream.script("a", { chunks: ["It is ", "done."] });
  const token = await stage.gateway.token({ agent: "first-line" });
  const client = await connect(stage.gateway, { token });
  const answer = await client.call("agents__first_line", { prompt: "Do it." });
  expect(answer.content).toEqual([{ type: "text", text: "It is done." }]);
  const { task, ...rest } = answer.structuredContent;
  expect(rest).toEqual({ status: "succeeded", output: "It is done.", credits_consumed: 0 });
  const view = await stage.gateway.call("GET", `/v1/tasks/${task}`);
  expect(view.body).toMatchObject({ agent: "first-line", tier: 1, prompt: "Do it.", status: "succeeded" });
  const entries = (await ledger(stage.gateway)).filter((entry) => entry.task === task);
  expect(entries[0]).toMatchObject({
    seq: answer._meta["gatehouse/ledger"],
    action: "task.dispatch",
    phase: "intent",
    channel: "mcp",
  });
  expect(entries.map(({ action, phase }) => `${action} ${phase}`)).toEqual([
    "task.dispatch intent",
    "model.call intent",
    "model.call outcome",
    "task.dispatch outcome",
    "task.read single",
  ]);
});

test("it is offered exactly the tools that agent and caller share", async () => {
  const asked = async (token: object, name: string) => {
    const before = stage.upstream.requests.length;
    const client = await connect(stage.gateway, { token: await stage.gateway.token(token) });
    await client.call(name, { prompt: "hi" });
    const tools = stage.upstream.requests[before]?.body.tools as { function: { name: string } }[] | undefined;
    return (tools ?? []).map((tool) => tool.function.name);
  };
  stage.upstream.script("a", { chunks: ["Done."] });
  expect(await asked({ scopes: ["tasks:write"] }, "agents__second")).toEqual([]);
  expect(await asked({ scopes: ["tasks:write", "tools:vault.*"] }, "agents__second")).toEqual([]);
  expect(await asked({ scopes: ["tasks:write", "tools:*"] }, "agents__second")).toEqual(["time__now"]);
  expect(
    await asked({ agent: "first-line", scopes: ["tasks:write", "tools:vault.read"] }, "agents__first_line"),
  ).toEqual(["vault__read"]);
});

test("agents whose names would be the same over MCP stay distinct", async () => {
  await stage.gateway.agent("same-name");
  await stage.gateway.agent("same_name");
  stage.upstream.script("a", { chunks: ["Done."] });
  const client = await connect(stage.gateway);
  const { tools } = await client.ask("tools/list");
  for (const agent of ["same-name", "same_name"]) {
    const { name } = tools.find(({ title }: { title: string }) => title === `agents.${agent}`);
    for (const called of [name, `agents.${agent}`]) {
      const { structuredContent } = await client.call(called, { prompt: "hi" });
      const task = await stage.gateway.call("GET", `/v1/tasks/${structuredContent.task}`);
      expect(task.body.agent).toBe(agent);
    }
  }
});

test("a failed task is answered with the reason", async () => {
  stage.upstream.script("a", { status: 500 });
  const client = await connect(stage.gateway);
  const answer = await client.call("agents__second", { prompt: "hi" });
  expect(answer.isError).toBe(true);
  expect(answer.structuredContent).toMatchObject({ status: "failed", output: null });
  expect(answer.content[0].text).not.toBe("");
});

test("progress reports what the task does, and increases", async () => {
  stage.upstream.script("a", (_request, index) =>
    index === 0 ? { toolCalls: [{ name: "time__now", arguments: {} }] } : { chunks: ["Done."] },
  );
  const client = await connect(stage.gateway);
  const params = { name: "agents__second", arguments: { prompt: "hi" }, _meta: { progressToken: "p" } };
  const { messages } = await client.post(request("tools/call", params));
  const told = messages
    .filter(({ method }) => method === "notifications/progress")
    .map(({ params }) => params);
  expect(told.map(({ message }) => message)).toEqual([
    "queued",
    "running on up/a",
    "calling time.now",
    "time.now succeeded",
    "writing, 5 characters",
  ]);
  expect(told.every(({ progressToken }) => progressToken === "p")).toBe(true);
  expect(told.map(({ progress }) => progress)).toEqual([1, 2, 3, 4, 5]);
});

describe("a task behind a waiting call", () => {
  const running = async () => (await stage.gateway.call("GET", "/v1/tasks?limit=1")).body.data[0];

  test("is cancelled if the client cancels the call, and the model's call is closed", async () => {
    const hold = held();
    stage.upstream.script("a", hold.script);
    const client = await connect(stage.gateway);
    const asked = request("tools/call", { name: "agents__second", arguments: { prompt: "hi" } });
    const stream = watch(await client.open(asked));
    await hold.asked;
    const { id } = await running();
    await client.tell("notifications/cancelled", { requestId: asked.id, reason: "no more" });
    await stream.ended;
    expect(stream.text()).not.toContain('"result"');
    await until(async () => (await running()).status === "cancelled");
    expect((await running()).id).toBe(id);
    await until(() => stage.upstream.requests.at(-1)?.aborted === true);
    hold.open();
  });

  test("continues if the client only disconnects", async () => {
    const hold = held({ chunks: ["Done anyway."] });
    stage.upstream.script("a", hold.script);
    const client = await connect(stage.gateway);
    const abort = new AbortController();
    const params = { name: "agents__second", arguments: { prompt: "hi" } };
    const stream = watch(await client.open(request("tools/call", params), { signal: abort.signal }));
    await hold.asked;
    abort.abort();
    await stream.ended;
    hold.open();
    await until(async () => (await running()).status === "succeeded");
  });

  test("is reported to the client if a person cancels it elsewhere", async () => {
    const hold = held();
    stage.upstream.script("a", hold.script);
    const client = await connect(stage.gateway);
    const stream = watch(
      await client.open(request("tools/call", { name: "agents__second", arguments: { prompt: "hi" } })),
    );
    await hold.asked;
    const { id } = await running();
    await stage.gateway.call("POST", `/v1/tasks/${id}/cancel`);
    const answer = JSON.parse((await stream.saw(({ data }) => data.includes('"result"'))).data);
    expect(answer.result).toMatchObject({
      isError: true,
      structuredContent: { task: id, status: "cancelled" },
    });
    expect(isMessage("notifications/progress")({ event: "", id: "", data: stream.text() })).toBe(false);
    hold.open();
  });
});

test("tasks over REST are unchanged, and every intent has its outcome", async () => {
  stage.upstream.script("a", { chunks: ["Done."] });
  const task = await run(stage.gateway, { agent: "second" });
  expect(task.status).toBe("succeeded");
  await dispatch(stage.gateway, { agent: "second" });
  await until(async () => unsettled(await ledger(stage.gateway)).length === 0);
});
