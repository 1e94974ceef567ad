/** `DELETE /v1/ledger/:seq/payload` removes prompts, outputs and arguments. The evidence about them stays complete. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { namesOf, parseErasure } from "../../src/ledger/proof/erasure.ts";
import { databasePath } from "../../src/store/directory.ts";
import { readFile } from "../faults/support.ts";
import { chainFaults } from "../ledger/support.ts";
import { allEvents, outline } from "../support/events.ts";
import type { Behaviour, Script } from "../support/fake-model.ts";
import { dispatch, ended, held, ledger, openEvents, run } from "../tasks/support.ts";
import { leftovers } from "../vault/files-support.ts";
import {
  ANSWER,
  ARGUMENT,
  entriesOf,
  erase,
  events,
  lastErasure,
  left,
  PROMPT,
  payloads,
  read,
  script,
  stage,
  TASK,
  TEXTS,
  useStage,
} from "./payload-support.ts";

useStage();

/** Scripts the call of this number with `at`, and all others with `others`. */
function scriptAt(number: number, at: Script, others: Behaviour): void {
  stage.upstream.script("a", (call, index) => {
    if (index !== number) return others;
    return typeof at === "function" ? at(call, index) : at;
  });
}

describe("is refused", () => {
  test.each(["999999", "0", "-1", "01", "1.0", "1e3", "x", "%20", "9007199254740993"])(
    "with 404 for %s, which is not an entry",
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

  test("to a token that acts as an agent, whatever its scopes and whoever the entry belongs to", async () => {
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
