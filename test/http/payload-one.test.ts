/** `DELETE /v1/ledger/:seq/payload` of one entry of a task, of a direct call, and of very many tasks. */
import { beforeEach, describe, expect, test } from "bun:test";
import { namesOf, parseErasure } from "../../src/ledger/proof/erasure.ts";
import { connect } from "../mcp/support.ts";
import { ownConnection } from "../support/own-connection.ts";
import { ledger, run, until } from "../tasks/support.ts";
import {
  ANSWER,
  ARGUMENT,
  ASIDE,
  clock,
  entriesOf,
  erase,
  events,
  lastErasure,
  left,
  payloads,
  read,
  script,
  stage,
  TASK,
  useStage,
} from "./payload-support.ts";

useStage();

const RESULT = "Antarctica/Troll";

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

  test("an output is removed with all of the model's other texts, and the prompt stays", async () => {
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

test("of 120 erased tasks among 160, no text remains once the store is rewritten", async () => {
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
