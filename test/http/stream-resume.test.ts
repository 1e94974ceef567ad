import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { allEvents, outline, type ReadEvent, readEvents } from "../support/events.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { dispatch, ended, held, openEvents, yamlOf } from "../tasks/support.ts";

const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-stream-"));
const upstream = startFakeModel();
const yaml = yamlOf(upstream.url, { tiers: { 1: ["a"] } });
let gateway: TestGateway;
let finished = "";
let whole: ReadEvent[] = [];

beforeAll(async () => {
  gateway = await startGateway({ yaml, dataDir });
  await gateway.agent("plain");
  upstream.script("a", (_request, call) =>
    call === 0
      ? { chunks: ["a", "b"], toolCalls: [{ name: "time__now", arguments: {} }] }
      : { chunks: ["c", "d", "e"] },
  );
  finished = await dispatch(gateway, { agent: "plain", tools: ["time.now"] });
  whole = await allEvents(await openEvents(gateway, finished));
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

describe("a position is refused if it is", () => {
  test.each([
    ["negative", { "last-event-id": "-1" }, ""],
    ["no number", { "last-event-id": "abc" }, ""],
    ["a fraction", { "last-event-id": "1.5" }, ""],
    ["a list", { "last-event-id": "1, 2" }, ""],
    ["beyond all numbers", { "last-event-id": "9".repeat(16) }, ""],
    ["negative in the query", {}, "?after=-1"],
    ["not a number in the query", {}, "?after=x"],
    ["empty in the query", {}, "?after="],
    ["beyond all numbers in the query", {}, `?after=${"9".repeat(30)}`],
    ["given twice", {}, "?after=1&after=2"],
    ["misspelled", {}, "?From=1"],
  ])("%s", async (...[, headers, query]) => {
    const sent = new Headers(headers);
    const path = `/v1/tasks/${finished}/events${query}`;
    const answer = await gateway.call("GET", path, { headers: Object.fromEntries(sent) });
    expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
  });
});

test("ids count from 1 without gaps, from task.created to task.finished", () => {
  expect(whole.map(({ id }) => id)).toEqual(whole.map((_event, index) => index + 1));
  expect(outline(whole)).toEqual([
    ...["task.created", "task.started", "output.delta", "tool.call", "tool.result"],
    ...["output.delta", "task.finished"],
  ]);
  expect(whole.at(-1)?.data).toMatchObject({ id: finished, status: "succeeded", output: "cde" });
});

/** Checks what follows each position, by header and by query. */
async function expectRests(id: string, events: readonly ReadEvent[]): Promise<void> {
  for (let after = 0; after <= events.length + 1; after++) {
    const rest = events.slice(after);
    expect(await allEvents(await openEvents(gateway, id, { "last-event-id": String(after) }))).toEqual(rest);
    expect(await allEvents(await openEvents(gateway, id, {}, `?after=${after}`))).toEqual(rest);
  }
}

test("each position of a finished task returns exactly the rest", () => expectRests(finished, whole));

test("the query takes precedence over the header, and an empty header means the beginning", async () => {
  const [last] = await allEvents(await openEvents(gateway, finished, { "last-event-id": "2" }, "?after=9"));
  expect(last).toEqual(whole[9]);
  expect(await allEvents(await openEvents(gateway, finished, { "last-event-id": "" }))).toEqual(whole);
});

test("while a task runs, each position returns the rest as it arrives, the same bytes for 32 readers", async () => {
  const hold = held({ chunks: ["x", "y", "z"] });
  upstream.script("a", hold.script);
  const id = await dispatch(gateway, { agent: "plain" });
  const live = readEvents(await openEvents(gateway, id));
  for await (const event of live) if (String(event.data.text).endsWith("z")) break;
  const late = Array.from({ length: 7 }, (_, after) =>
    openEvents(gateway, id, { "last-event-id": String(after) }).then(allEvents),
  );
  const readers = Array.from({ length: 32 }, async () => (await openEvents(gateway, id)).text());
  await Promise.all(Array.from({ length: 3 }, () => gateway.call("GET", `/v1/tasks/${id}`)));
  hold.open();
  const texts = await Promise.all(readers);
  expect(new Set(texts).size).toBe(1);
  const events = await allEvents(await openEvents(gateway, id));
  for (const [after, rest] of (await Promise.all(late)).entries()) expect(rest).toEqual(events.slice(after));
  await expectRests(id, events);
  expect((await ended(gateway, id)).output).toBe("xyz");
});

test("after a restart, a finished task's events are unchanged", async () => {
  await gateway.stop();
  gateway = await startGateway({ yaml, dataDir });
  // The environment's admin token has changed; the helper sends its own.
  const answer = await gateway.call("GET", `/v1/tasks/${finished}`);
  expect(answer.status).toBe(200);
  await expectRests(finished, whole);
});
