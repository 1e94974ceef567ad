/**
 * `DELETE /v1/ledger/:seq/payload` removes a prompt, an output or arguments. The evidence about them stays complete.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { namesOf, parseErasure } from "../../src/ledger/proof/erasure.ts";
import { databasePath } from "../../src/store/directory.ts";
import { readFile } from "../faults/support.ts";
import { chainFaults } from "../ledger/support.ts";
import { connect } from "../mcp/support.ts";
import { FakeClock } from "../support/clock.ts";
import { allEvents, outline } from "../support/events.ts";
import type { Behaviour, Script } from "../support/fake-model.ts";
import { ownConnection } from "../support/own-connection.ts";
import {
  dispatch,
  type Entry,
  ended,
  held,
  ledger,
  openEvents,
  run,
  type Stage,
  startStage,
  until,
} from "../tasks/support.ts";
import { leftovers } from "../vault/files-support.ts";

let stage: Stage;
let clock: FakeClock;

beforeEach(async () => {
  clock = new FakeClock();
  stage = await startStage({ clock, tiers: { 1: ["a"] } });
  await stage.gateway.agent("scout", { max_steps: 100 });
});

afterEach(() => stage.stop());

const PROMPT = "whither goes the obnubilated quagga";
const ASIDE = "Let me look at the verisimilitude.";
const ARGUMENT = "Antarctica/Troll";
const RESULT = "Antarctica/Troll";
const ANSWER = "It went to the gossamer vaultling, they say.";
const TEXTS = { PROMPT, ASIDE, ARGUMENT, ANSWER };
const TASK = { agent: "scout", prompt: PROMPT, tools: ["time.now"] };

/** Scripts a model that says something, asks for the time in a place with a recognisable name, and answers. */
function script(): void {
  stage.upstream.script("a", ({ body }) =>
    body.messages.at(-1)?.role === "tool"
      ? { chunks: [ANSWER.slice(0, 10), ANSWER.slice(10)] }
      : { chunks: [ASIDE], toolCalls: [{ name: "time__now", arguments: { time_zone: ARGUMENT } }] },
  );
}

/** Scripts the call of this number with `at`, and all others with `others`. */
function scriptAt(number: number, at: Script, others: Behaviour): void {
  stage.upstream.script("a", (call, index) => {
    if (index !== number) return others;
    return typeof at === "function" ? at(call, index) : at;
  });
}

const erase = (seq: number | string, token?: string) =>
  stage.gateway.call("DELETE", `/v1/ledger/${seq}/payload`, token === undefined ? {} : { token });
const read = async (id: string) => (await stage.gateway.call("GET", `/v1/tasks/${id}`)).body;
const events = async (id: string) => allEvents(await openEvents(stage.gateway, id));
const left = (texts: Readonly<Record<string, string>> = TEXTS) => leftovers(stage.gateway.dataDir, texts);

/** A task's entries by their meaning. */
async function entriesOf(task: string) {
  const entries = (await ledger(stage.gateway)).filter((entry) => entry.task === task);
  const seqOf = (action: string, phase: string) =>
    entries.find((entry) => entry.action === action && entry.phase === phase)?.seq ?? 0;
  return {
    dispatch: seqOf("task.dispatch", "intent"),
    finish: seqOf("task.dispatch", "outcome"),
    model: seqOf("model.call", "intent"),
    call: seqOf("tool.call", "intent"),
    result: seqOf("tool.call", "outcome"),
  };
}

const lastErasure = async (): Promise<Entry | undefined> =>
  (await ledger(stage.gateway)).findLast(({ action }) => action === "payload.erase");

/** The payloads in the file. */
function payloads(): { seq: number; kind: string }[] {
  const file = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
  try {
    return file.query<{ seq: number; kind: string }, []>("SELECT seq, kind FROM payloads ORDER BY seq").all();
  } finally {
  }
}

describe("is refused", () => {
  test.each(["999999", "0", "-1", "01", "1.0", "1e3", "x", "%20", "9007199254740993"])(
    "with 404 for %s, which is no entry",
    async (seq) => {
      const answer = await erase(seq);
      expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
      expect(await lastErasure()).toMatchObject({ outcome: "denied", code: "not_found", phase: "single" });
    },
  );

  test("with 404 for an entry without a text: an agent's creation, a model call, a refused dispatch", async () => {
    script();
    const task = await run(stage.gateway, TASK);
    await stage.gateway.call("POST", "/v1/tasks", { body: { ...TASK, tier: 9 } });
    const refused = (await ledger(stage.gateway)).find(({ code }) => code === "unknown_tier");
    const before = payloads();
    for (const seq of [1, (await entriesOf(task.id)).model, refused?.seq ?? 0]) {
      const answer = await erase(seq);
      expect([seq, answer.status, answer.body.code]).toEqual([seq, 404, "not_found"]);
      expect(await lastErasure()).toMatchObject({ outcome: "denied", detail: { target_seq: seq } });
    }
    expect(payloads()).toEqual(before);
  });

  test("with 404 in another workspace, which has its own seqs", async () => {
    script();
    const task = await run(stage.gateway, TASK);
    const other = await stage.gateway.workspace("other");
    for (const seq of Object.values(await entriesOf(task.id)))
      expect((await erase(seq, other)).status).toBe(404);
    expect(await read(task.id)).toEqual(task);
  });

  test("to a token that acts as an agent, whatever its scopes and whoever's the entry", async () => {
    script();
    const task = await run(stage.gateway, TASK);
    const { dispatch: seq } = await entriesOf(task.id);
    const token = await stage.gateway.token({ agent: "scout", scopes: ["settings:write", "tasks:write"] });
    for (const each of [seq, 999_999]) {
      const answer = await erase(each, token);
      expect([answer.status, answer.body.code]).toEqual([403, "agent_forbidden"]);
    }
    expect(await lastErasure()).toMatchObject({ outcome: "denied", code: "agent_forbidden" });
    expect(await read(task.id)).toEqual(task);
  });

  test("with 409 for every entry of a task that has not finished, until it is cancelled", async () => {
    const hold = held({ chunks: [ANSWER] });
    scriptAt(1, hold.script, { toolCalls: [{ name: "time__now", arguments: { time_zone: ARGUMENT } }] });
    const id = await dispatch(stage.gateway, TASK);
    await hold.asked;
    const entries = await entriesOf(id);
    for (const seq of [entries.dispatch, entries.call, entries.result]) {
      const answer = await erase(seq);
      expect([answer.status, answer.body.code]).toEqual([409, "task_unfinished"]);
      expect(answer.body.detail).toContain("Cancel it first");
    }
    expect(await lastErasure()).toMatchObject({ outcome: "denied", code: "task_unfinished", task: id });
    expect(left({ PROMPT, ARGUMENT }).length).toBeGreaterThan(0);
    await stage.gateway.call("POST", `/v1/tasks/${id}/cancel`);
    expect((await erase(entries.dispatch)).status).toBe(204);
    expect(left()).toEqual([]);
    expect(await read(id)).toMatchObject({ status: "cancelled", prompt: null, output: null });
  });
});

describe("of the entry of a task's dispatch", () => {
  test("all of the task's texts are removed from every file, and the task is read with nulls", async () => {
    script();
    const before = await run(stage.gateway, TASK);
    expect(before).toMatchObject({ status: "succeeded", prompt: PROMPT, output: ANSWER });
    expect(left().length).toBeGreaterThanOrEqual(Object.keys(TEXTS).length);
    const entries = await entriesOf(before.id);
    const answer = await erase(entries.dispatch);
    expect([answer.status, answer.body]).toEqual([204, null]);
    expect(left()).toEqual([]);
    const after = await read(before.id);
    expect(after).toEqual({
      ...before,
      prompt: null,
      output: null,
      tools_called: before.tools_called.map((call: object) => ({ ...call, arguments: null })),
    });
    expect((await stage.gateway.call("GET", "/v1/tasks")).body.data).toEqual([after]);
    const stream = await events(before.id);
    expect(outline(stream)).toEqual([
      "task.created",
      "task.started",
      "tool.call",
      "tool.result",
      "task.finished",
    ]);
    expect(stream.find(({ event }) => event === "tool.call")?.data.arguments).toBeNull();
    expect(stream.at(-1)?.data).toEqual(after);
    for (const { id: last } of stream) {
      const rest = await allEvents(await openEvents(stage.gateway, before.id, {}, `?after=${last}`));
      expect(rest).toEqual(stream.filter((event) => event.id > last));
    }
  });

  test("the entries stay, and the call's own entry names exactly what was erased", async () => {
    script();
    const task = await run(stage.gateway, TASK);
    const before = await ledger(stage.gateway);
    const { dispatch: seq, finish, call, result } = await entriesOf(task.id);
    const answer = await erase(seq);
    const entry = await lastErasure();
    expect(answer.headers.get("gatehouse-ledger")).toBe(String(entry?.seq));
    expect(entry).toMatchObject({ phase: "single", outcome: "succeeded", task: task.id, channel: "rest" });
    expect(entry?.detail).toEqual({
      payloads: `${seq}.input ${call}.input ${result}.output ${finish}.output`,
      reason: "requested",
      target_seq: seq,
    });
    expect((await ledger(stage.gateway)).slice(0, before.length)).toEqual(before);
    expect(payloads()).toEqual([]);
    const { rows, integrity } = readFile(databasePath(stage.gateway.dataDir));
    expect([integrity, chainFaults(rows)]).toEqual([[{ integrity_check: "ok" }], []]);
  });

  test("a repetition is 204 again, with an entry that names nothing", async () => {
    script();
    const task = await run(stage.gateway, TASK);
    const { dispatch: seq, call } = await entriesOf(task.id);
    for (const expected of [4, 0, 0]) {
      expect((await erase(seq)).status).toBe(204);
      expect(parseErasure((await lastErasure()) ?? {})).toMatchObject({ payloads: Array(expected).fill({}) });
    }
    expect((await erase(call)).status).toBe(204);
    expect((await lastErasure())?.detail).toEqual({ payloads: "", reason: "requested", target_seq: call });
  });

  test("a task with more payloads than one entry can name gets several, the last of them the call's own", async () => {
    const toolCalls = Array.from({ length: 50 }, () => ({
      name: "time__now",
      arguments: { time_zone: ARGUMENT },
    }));
    stage.upstream.script("a", ({ body }) =>
      body.messages.at(-1)?.role === "tool" ? { chunks: [ANSWER] } : { toolCalls },
    );
    const task = await run(stage.gateway, TASK);
    const before = payloads();
    expect(before).toHaveLength(102);
    const { dispatch: seq } = await entriesOf(task.id);
    const answer = await erase(seq);
    const records = (await ledger(stage.gateway)).filter(({ action }) => action === "payload.erase");
    expect(records.map(({ task }) => task)).toEqual([task.id, task.id]);
    expect(records.at(-1)?.seq).toBe(Number(answer.headers.get("gatehouse-ledger")));
    const named = records.flatMap((record) => {
      const erasure = parseErasure(record);
      return erasure && "payloads" in erasure ? [erasure.payloads] : [];
    });
    expect(named.map(({ length }) => length)).toEqual([38, 64]);
    expect(namesOf(named.flat())).toBe(before.map(({ seq, kind }) => `${seq}.${kind}`).join(" "));
    expect([left(), payloads()]).toEqual([[], []]);
  });

  test("the texts of other tasks, before, after and at the same time, stay", async () => {
    const hold = held({ chunks: ["Early."] });
    scriptAt(0, hold.script, { chunks: ["Late."] });
    const around = await dispatch(stage.gateway, { agent: "scout", prompt: "around" });
    await hold.asked;
    const inside = await run(stage.gateway, { agent: "scout", prompt: PROMPT });
    hold.open();
    const outside = await ended(stage.gateway, around);
    const later = await run(stage.gateway, { agent: "scout", prompt: "later" });
    expect((await erase((await entriesOf(inside.id)).dispatch)).status).toBe(204);
    expect(await read(outside.id)).toEqual(outside);
    expect(await read(later.id)).toEqual(later);
    expect((await events(around)).at(-1)?.data).toEqual(outside);
    expect((await erase((await entriesOf(around)).dispatch)).status).toBe(204);
    expect(await read(later.id)).toEqual(later);
  });

  test("the idempotency key still works, but no longer reveals the request", async () => {
    const send = (prompt: string) =>
      stage.gateway.call("POST", "/v1/tasks", {
        body: { agent: "scout", prompt },
        headers: { "idempotency-key": "once" },
      });
    const first = await send(PROMPT);
    const task = await ended(stage.gateway, first.body.id);
    const file = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
    const fingerprint = () =>
      file.query<{ fingerprint: Uint8Array }, []>("SELECT fingerprint FROM idempotency_keys").get()
        ?.fingerprint;
    const known = fingerprint() ?? new Uint8Array(0);
    expect(known).toHaveLength(32);
    await erase((await entriesOf(task.id)).dispatch);
    expect(fingerprint()).toHaveLength(0);
    expect(leftovers(stage.gateway.dataDir, { fingerprint: known })).toEqual([]);
    for (const prompt of [PROMPT, "another"]) {
      const again = await send(prompt);
      expect([again.status, again.body.code]).toEqual([409, "idempotency_conflict"]);
    }
  });
});

describe("of one entry of a task", () => {
  let task: Awaited<ReturnType<typeof read>>;
  let entries: Awaited<ReturnType<typeof entriesOf>>;

  beforeEach(async () => {
    script();
    task = await run(stage.gateway, TASK);
    entries = await entriesOf(task.id);
  });

  test("arguments are removed from the task, its events and the files, and nothing else is", async () => {
    expect((await erase(entries.call)).status).toBe(204);
    expect((await lastErasure())?.detail).toEqual({
      payloads: `${entries.call}.input`,
      reason: "requested",
      target_seq: entries.call,
    });
    // The tool's result repeats its argument.
    await erase(entries.result);
    expect(left({ ARGUMENT, RESULT })).toEqual([]);
    const after = await read(task.id);
    expect(after).toEqual({ ...task, tools_called: [{ ...task.tools_called[0], arguments: null }] });
    const stream = await events(task.id);
    expect(stream.at(-1)?.data).toEqual(after);
    expect(
      stream
        .filter(({ event }) => event === "output.delta")
        .map(({ data }) => data.text)
        .join(""),
    ).toBe(ASIDE + ANSWER);
  });

  test("a result is removed from the files; no event has it", async () => {
    const before = await events(task.id);
    expect((await erase(entries.result)).status).toBe(204);
    expect(payloads()).not.toContainEqual({ seq: entries.result, kind: "output" });
    expect(payloads()).toHaveLength(3);
    expect(await events(task.id)).toEqual(before);
    expect(await read(task.id)).toEqual(task);
  });

  test("an output is removed with everything that the model said, and the prompt stays", async () => {
    expect((await erase(entries.finish)).status).toBe(204);
    expect(left({ ANSWER, ASIDE })).toEqual([]);
    const after = await read(task.id);
    expect(after).toEqual({ ...task, output: null });
    const stream = await events(task.id);
    expect(stream.at(-1)?.data).toEqual(after);
    expect(stream.map(({ event }) => event)).not.toContain("output.delta");
  });

  test("texts erased one by one stay erased when the rest is erased, in any order", async () => {
    for (const seq of [entries.finish, entries.call, entries.result, entries.dispatch]) {
      expect((await erase(seq)).status).toBe(204);
    }
    expect([left(), payloads()]).toEqual([[], []]);
    expect((await events(task.id)).at(-1)?.data).toEqual(await read(task.id));
  });

  test("erasing all of them at the same time leaves nothing, and names each payload once", async () => {
    const named = [...Object.values(entries), ...Object.values(entries)].filter(
      (seq) => seq !== entries.model,
    );
    const answers = await Promise.all(named.map((seq) => erase(seq)));
    expect(answers.map(({ status }) => status)).toEqual(named.map(() => 204));
    expect([left(), payloads()]).toEqual([[], []]);
    expect((await events(task.id)).at(-1)?.data).toEqual(await read(task.id));
    const records = (await ledger(stage.gateway)).map(parseErasure);
    const all = records.flatMap((erasure) => (erasure && "payloads" in erasure ? erasure.payloads : []));
    expect(namesOf(all)).toBe(
      `${entries.dispatch}.input ${entries.call}.input ${entries.result}.output ${entries.finish}.output`,
    );
  });
});

test("a direct call over MCP is erased by its two entries", async () => {
  const client = await connect(stage.gateway);
  await client.call("time__now", { time_zone: ARGUMENT });
  const calls = (await ledger(stage.gateway)).filter(({ action }) => action === "tool.call");
  expect(calls.map(({ phase, task }) => [phase, task ?? null])).toEqual([
    ["intent", null],
    ["outcome", null],
  ]);
  for (const { seq, phase } of calls) {
    expect((await erase(seq)).status).toBe(204);
    const kind = phase === "intent" ? "input" : "output";
    expect((await lastErasure())?.detail).toMatchObject({ payloads: `${seq}.${kind}` });
  }
  expect(left({ ARGUMENT })).toEqual([]);
});

test("texts that the store refused to erase are erased by the next call", async () => {
  script();
  const task = await run(stage.gateway, TASK);
  const { dispatch: seq } = await entriesOf(task.id);
  const file = ownConnection(stage.gateway.dataDir);
  file.run("CREATE TRIGGER full BEFORE DELETE ON payloads BEGIN SELECT RAISE(ABORT, 'full'); END");
  const answer = await erase(seq);
  expect([answer.status, answer.body.code]).toEqual([503, "ledger_unavailable"]);
  expect(payloads()).toHaveLength(4);
  file.run("DROP TRIGGER full");
  expect((await erase(seq)).status).toBe(204);
  expect(left()).toEqual([]);
});

test("of 120 erased tasks among 160, no text is left anywhere once the store is rewritten", async () => {
  // Texts of varying length, so the engine moves rows between pages and leaves copies behind.
  const mark = (kind: string, n: number) =>
    `~${kind}${String(n).padStart(3, "0")}~`.repeat(1 + ((n * 7_919) % 60));
  stage.upstream.script("a", ({ body }) => {
    const n = Number(/~p(\d+)~/.exec(String(body.messages.at(-1)?.content))?.[1]);
    return { chunks: [mark("o", n)] };
  });
  const numbers = Array.from({ length: 160 }, (_, n) => n);
  const seqs: number[] = [];
  for (const n of numbers) {
    const { id } = await run(stage.gateway, { agent: "scout", prompt: mark("p", n) });
    const found = await stage.gateway.call("GET", "/v1/ledger?action=task.dispatch&order=desc&limit=2");
    expect(found.body.data[1].task).toBe(id);
    seqs.push(found.body.data[1].seq);
  }
  const order = numbers.map((n) => (n * 77) % numbers.length);
  for (const n of order.slice(0, 120)) expect((await erase(seqs[n] ?? 0)).status).toBe(204);
  const needles = (chosen: readonly number[]) =>
    Object.fromEntries(
      chosen.flatMap((n) => ["p", "o"].map((kind) => [`${kind}${n}`, mark(kind, n).slice(0, 6)])),
    );
  await until(() => {
    clock.advance(5_000);
    return left(needles(order.slice(0, 120))).length === 0;
  });
  const kept = needles(order.slice(120));
  expect(new Set(left(kept).map((each) => each.split(" ")[0])).size).toBe(Object.keys(kept).length);
}, 60_000);
