/** Calls over MCP that need a person's approval: each waits as a separate task. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type LastingStore, lastingStore } from "../support/lasting-store.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { gate, ledger, openEvents, unsettled, until } from "../tasks/support.ts";
import {
  addConnector,
  type Client,
  connect,
  isMessage,
  type Message,
  request,
  type Stream,
  watch,
} from "./support.ts";

const HOUR = 3_600_000;

let gateway: TestGateway;
let upstream: ScriptedMcp;
let clock: FakeClock;
let client: Client;
let store: LastingStore;
beforeEach(async () => {
  clock = new FakeClock();
  upstream = startScriptedMcp(["send"]);
  store = lastingStore();
  const yaml = "limits: { requests_per_minute: 1000000 }\n";
  gateway = await startGateway({ ...store.options, clock, yaml });
  await addConnector(gateway, "up", upstream.url);
  await gateway.agent("careful", { approvals: ["up.send"] });
  client = await connect(gateway, { token: await gateway.token({ agent: "careful" }) });
});
afterEach(async () => {
  await gateway.stop();
  await upstream.close();
  await store.remove();
});

interface Asking {
  readonly id: number;
  readonly stream: Stream;
  readonly task: string;
  readonly path: string;
}

/** Calls the tool and waits until a person is asked for approval. */
async function ask(input: object = { to: "all" }): Promise<Asking> {
  const params = { name: "up__send", arguments: input, _meta: { progressToken: "p" } };
  const asked = request("tools/call", params);
  const stream = watch(await client.open(asked));
  let found: Message;
  await until(async () => {
    [found] = (await gateway.call("GET", "/v1/approvals")).body.data;
    return found !== undefined;
  });
  return {
    id: asked.id,
    stream,
    task: found.task,
    path: `/v1/tasks/${found.task}/approvals/${found.call_id}`,
  };
}

const decide = async (path: string, body: object) => {
  const answer = await gateway.call("POST", path, { body });
  expect([answer.status, answer.body.status]).toEqual([200, expect.any(String)]);
};
const view = async (task: string) => (await gateway.call("GET", `/v1/tasks/${task}`)).body;
const progress = ({ events }: Stream) => events.filter(isMessage("notifications/progress"));

async function answerOf({ stream, id }: Asking): Promise<Message> {
  const event = await stream.saw(({ data }) => data.includes(`"id":${id}`));
  return JSON.parse(event.data);
}

test("a denied call is not made: the answer says why, and the task is cancelled, with nothing failed", async () => {
  const asking = await ask();
  await decide(asking.path, { decision: "deny", reason: "not on Sundays" });
  const { result } = await answerOf(asking);
  expect(result).toMatchObject({ isError: true, _meta: { "gatehouse/task": asking.task } });
  expect(result.content[0].text).toContain("not on Sundays");
  expect(upstream.calls).toEqual([]);
  expect(await view(asking.task)).toMatchObject({
    status: "cancelled",
    error: null,
    output: expect.stringContaining("not on Sundays"),
  });
});

test("a call shown for a replaced connector of the same name is shown again, and made once it is approved", async () => {
  const asking = await ask();
  const other = startScriptedMcp(["send"]);
  await gateway.call("DELETE", "/v1/connectors/up");
  await addConnector(gateway, "up", other.url);
  const refused = await gateway.call("POST", asking.path, { body: { decision: "approve" } });
  expect([refused.status, refused.body.code]).toEqual([409, "approval_changed"]);
  expect([upstream.calls, other.calls]).toEqual([[], []]);
  await decide(asking.path, { decision: "approve" });
  expect((await answerOf(asking)).result.isError).not.toBe(true);
  expect([upstream.calls.length, other.calls.length]).toEqual([0, 1]);
  await other.close();
});

test("an undecided call counts as denied after a day", async () => {
  const asking = await ask();
  clock.advance(24 * HOUR + 10_000);
  const { result } = await answerOf(asking);
  expect(result).toMatchObject({ isError: true });
  expect(result.content[0].text).toContain("in time");
  expect(upstream.calls).toEqual([]);
  expect((await view(asking.task)).status).toBe("cancelled");
});

test("an approved call is made as usual, and its client gets the tool's whole answer", async () => {
  const answer = { content: [{ type: "text", text: "sent" }], structuredContent: { sent: 2 } };
  upstream.answer(() => answer);
  const asking = await ask({ to: "all" });
  expect(await view(asking.task)).toMatchObject({
    status: "awaiting_approval",
    agent: "careful",
    tools: ["up.send"],
    prompt: '{"tool":"up.send","arguments":{"to":"all"}}',
  });
  await decide(asking.path, { decision: "approve" });
  expect((await answerOf(asking)).result).toMatchObject(answer);
  expect(upstream.calls).toEqual([{ name: "send", input: { to: "all" } }]);
  expect(await view(asking.task)).toMatchObject({
    status: "succeeded",
    output: "sent",
    tools_called: [{ tool: "up.send", arguments: { to: "all" }, status: "succeeded" }],
  });
  const events = await (await openEvents(gateway, asking.task)).text();
  expect(events.match(/^event: .*$/gm)).toEqual([
    "event: task.created",
    "event: tool.call",
    "event: approval.required",
    "event: approval.decided",
    "event: tool.result",
    "event: task.finished",
  ]);
  const entries = await ledger(gateway);
  expect(unsettled(entries)).toEqual([]);
  const own = entries.filter(({ task, action }) => task === asking.task && action !== "task.read");
  expect(own.map(({ action, phase, outcome }) => [action, phase, outcome])).toEqual([
    ["task.dispatch", "intent", "allowed"],
    ["tool.call", "single", "pending"],
    ["oversight.approve", "single", "succeeded"],
    ["tool.call", "intent", "allowed"],
    ["tool.call", "outcome", "succeeded"],
    ["task.dispatch", "outcome", "succeeded"],
    ...own.slice(6).map(() => expect.anything()),
  ] as never);
});

test("a failing tool's answer is passed on, and its task has failed", async () => {
  upstream.answer(() => ({ ...text("no such address"), isError: true }));
  const asking = await ask();
  await decide(asking.path, { decision: "approve" });
  expect((await answerOf(asking)).result).toMatchObject({
    isError: true,
    content: [{ text: "no such address" }],
  });
  expect(await view(asking.task)).toMatchObject({ status: "failed", output: "no such address" });
});

test("progress comes at once, every ten seconds, and with the decision", async () => {
  const asking = await ask();
  await asking.stream.saw(isMessage("notifications/progress"));
  expect(progress(asking.stream)).toHaveLength(1);
  clock.advance(10_000);
  clock.advance(10_000);
  await until(() => progress(asking.stream).length === 3);
  const held = gate();
  upstream.answer(async () => {
    await held.opened;
    return text("sent");
  });
  await decide(asking.path, { decision: "approve" });
  await asking.stream.saw(({ data }) => data.includes('"message":"decided"'));
  held.open();
  await answerOf(asking);
  const numbers = progress(asking.stream).map(({ data }) => JSON.parse(data).params.progress);
  expect(numbers).toEqual(numbers.toSorted((a: number, b: number) => a - b));
});

describe("the wait ends:", () => {
  test("a client that cancels withdraws the request for approval", async () => {
    const asking = await ask();
    await client.tell("notifications/cancelled", { requestId: asking.id });
    await until(async () => (await view(asking.task)).status === "cancelled");
    expect((await gateway.call("GET", "/v1/approvals")).body.data).toEqual([]);
    const late = await gateway.call("POST", asking.path, { body: { decision: "approve" } });
    expect([late.status, late.body.code]).toEqual([409, "approval_decided"]);
    expect(upstream.calls).toEqual([]);
    const entries = await ledger(gateway);
    expect(entries.find(({ action }) => action === "task.cancel")).toMatchObject({
      task: asking.task,
      oversight: { decision: "cancel" },
    } as object);
  });

  test("a client that disconnects leaves the request open, and the task makes the call", async () => {
    const asking = await ask();
    asking.stream.leave();
    expect(await client.end()).toBe(200);
    expect((await view(asking.task)).status).toBe("awaiting_approval");
    await decide(asking.path, { decision: "approve" });
    await until(async () => (await view(asking.task)).status === "succeeded");
    expect(await view(asking.task)).toMatchObject({ output: 'send {"to":"all"}' });
    expect(upstream.calls).toHaveLength(1);
  });

  test("cancelling the task over REST ends the wait", async () => {
    const asking = await ask();
    await gateway.call("POST", `/v1/tasks/${asking.task}/cancel`);
    expect((await answerOf(asking)).result).toMatchObject({
      isError: true,
      content: [{ text: "The call was cancelled." }],
    });
    expect(upstream.calls).toEqual([]);
  });

  test("a stop of its agent ends it", async () => {
    const asking = await ask();
    await gateway.call("POST", "/v1/agents/careful/stop");
    expect((await answerOf(asking)).result).toMatchObject({ isError: true });
    expect(await view(asking.task)).toMatchObject({ status: "cancelled", error: { code: "agent_stopped" } });
  });
});

test("it waits across a restart, and is then made only by the task", async () => {
  const asking = await ask();
  const { admin } = gateway;
  await gateway.gateway.stop();
  await asking.stream.ended;
  expect(asking.stream.text()).toContain('"draining"');
  gateway = await startGateway({ ...store.options, clock });
  const call = (method: string, path: string, body?: object) =>
    gateway.call(method, path, { token: admin, ...(body ? { body } : {}) });
  expect((await call("GET", `/v1/tasks/${asking.task}`)).body.status).toBe("awaiting_approval");
  expect((await call("POST", asking.path, { decision: "approve" })).status).toBe(200);
  await until(async () => (await call("GET", `/v1/tasks/${asking.task}`)).body.status === "succeeded");
  expect(upstream.calls).toHaveLength(1);
});
