/** Background responses that wait inside their call, because its intent cannot be written on a nearly full disk. */
import { afterEach, describe, expect, test } from "bun:test";
import { ModelCalls } from "../../../src/dialects/model-calls.ts";
import { ConversationMemory } from "../../../src/tasks/run/conversation-memory.ts";
import { ownConnection } from "../../support/own-connection.ts";
import { until } from "../../support/until.ts";
import {
  eventsOf,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "../responses-support.ts";
import type { LedgerRow } from "../support.ts";

const LONG = "x".repeat(2_000_000);

const { run } = ModelCalls.prototype;
const { open } = ConversationMemory.prototype;
let stage: ResponsesStage | undefined;
afterEach(async () => {
  ModelCalls.prototype.run = run;
  ConversationMemory.prototype.open = open;
  await stage?.stop();
  stage = undefined;
});

/** The counted memory after each call that failed before anything was sent. */
function watchAttempts(): number[] {
  const held: number[] = [];
  let memory: ConversationMemory | undefined;
  ConversationMemory.prototype.open = function (this: ConversationMemory, ...args) {
    memory = this;
    return open.apply(this, args);
  };
  ModelCalls.prototype.run = async function (this: ModelCalls, ...args) {
    try {
      return await run.apply(this, args);
    } catch (error) {
      held.push(memory?.held ?? 0);
      throw error;
    }
  };
  return held;
}

/** The smaller writes before an intent succeed, as on a disk that is nearly full. @param phase others are written */
function refuseCalls({ gateway }: ResponsesStage, phase = "intent"): () => void {
  const file = ownConnection(gateway.dataDir);
  file.run(`CREATE TEMP TRIGGER full BEFORE INSERT ON main.ledger
    WHEN NEW.bytes LIKE '{"action":"model.call"%"phase":"${phase}"%' BEGIN SELECT RAISE(ABORT, 'full'); END`);
  return () => file.run("DROP TRIGGER full");
}

async function dispatch({ post, clerk: token }: ResponsesStage, more: object = {}): Promise<string> {
  const body = { model: "up/first", input: "Good morning", background: true, ...more };
  return JSON.parse((await post(JSON.stringify(body), { token })).bytes.toString()).id;
}

/** The counted calls of clients that sent nothing, by outcome. */
async function unsentCalls({ gateway }: ResponsesStage): Promise<string[]> {
  const response = await fetch(`${gateway.url}/metrics`, {
    headers: { authorization: `Bearer ${gateway.admin}` },
  });
  const lines = (await response.text()).match(/^gatehouse_client_model_calls_total\{.*\} \d+/gm) ?? [];
  return lines
    .map((line) => line.replace(/.*outcome="(\w+)"\} /, "$1 "))
    .filter((line) => !/succeeded/.test(line));
}

const statusOf = async ({ ask }: ResponsesStage, id: string) => (await ask("GET", `/${id}`)).body.status;

test("its conversation is counted once, however often it is read again, and no wait is a failed call", async () => {
  stage = await openResponsesStage();
  const waiting = stage;
  stage.upstream.script("first", { response: responseOf([textItem(LONG)]) });
  const previous = await dispatch(stage, { background: false });
  stage.upstream.script("other", { events: eventsOf(responseOf([textItem("Good evening")])) });
  const allow = refuseCalls(stage);
  const held = watchAttempts();
  // Another provider does not know the earlier response, so its text is sent.
  const id = await dispatch(stage, { model: "second/other", previous_response_id: previous });
  await until(() => held.length >= 4);
  expect(held[0]).toBeGreaterThan(LONG.length);
  expect(new Set(held).size).toBe(1);
  expect(await unsentCalls(stage)).toEqual([]);
  allow();
  await until(async () => (await statusOf(waiting, id)) === "completed");
  expect(await unsentCalls(stage)).toEqual([]);
});

describe("the entries of a waiting response state what ended it:", () => {
  test.each([
    ["a stop", "POST", "/v1/agents/clerk/stop", ["denied", "agent_stopped"], "The agent clerk is stopped."],
    [
      "a stop of the workspace",
      "POST",
      "/v1/workspace/stop",
      ["denied", "agent_stopped"],
      "The workspace is stopped",
    ],
    ["a cancellation", "POST", null, ["cancelled", "client_closed"], null],
  ])("%s", async (_, method, path, recorded, message) => {
    stage = await openResponsesStage();
    const held = watchAttempts();
    refuseCalls(stage);
    const id = await dispatch(stage);
    await until(() => held.length >= 1);
    const { gateway } = stage;
    const ending = path === null ? stage.ask(method, `/${id}/cancel`) : gateway.call(method, path);
    expect((await ending).status).toBe(200);
    let calls: LedgerRow[] = [];
    await until(async () => {
      calls = (await gateway.call("GET", "/v1/ledger?action=model.call")).body.data;
      return calls.length > 0;
    });
    expect(calls.map(({ outcome, code }) => [outcome, code])).toEqual([recorded]);
    const { status, error } = (await stage.ask("GET", `/${id}`)).body;
    expect(status).toBe("cancelled");
    if (message === null) expect(error).toBeNull();
    else expect(error).toMatchObject({ code: "agent_stopped", message: expect.stringContaining(message) });
    expect(await unsentCalls(stage)).toEqual([`${recorded[0]} 1`]);
    expect(stage.upstream.requests.length).toBe(0);
  });
});

describe("what ended a waiting response is its error, even if the call's own entry cannot be written:", () => {
  test.each([
    ["a stop", "agent_stopped", "POST", "/stop", undefined],
    [
      "a policy",
      "model_forbidden",
      "PATCH",
      "",
      { tier_policy: { tiers: [1], models: { allow: [], deny: ["*"] } } },
    ],
  ])("%s", async (_, code, method, path, body) => {
    stage = await openResponsesStage();
    const waiting = stage;
    const held = watchAttempts();
    refuseCalls(stage, "%");
    const id = await dispatch(stage);
    await until(() => held.length >= 1);
    const changed = await stage.gateway.call(method, `/v1/agents/clerk${path}`, body ? { body } : {});
    expect(changed.status).toBe(200);
    await until(async () => (await statusOf(waiting, id)) !== "in_progress");
    const { error } = (await stage.ask("GET", `/${id}`)).body;
    expect(error).toMatchObject({ code, message: expect.not.stringContaining("ledger") });
    expect(await unsentCalls(stage)).toEqual(["denied 1"]);
  });
});
