/**
 * `ledger.payload_days`: old prompts, outputs and arguments are erased, including from tasks' events and from every
 * file.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync } from "node:fs";
import { databasePath } from "../../src/store/directory.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { finishedTask } from "../access/routes.ts";
import { accounts, expiryOf } from "../ledger/payload-support.ts";
import { draft, openLedger } from "../ledger/support.ts";
import { allEvents, outline } from "../support/events.ts";
import { ownConnection } from "../support/own-connection.ts";
import { tempDir } from "../support/process.ts";
import { sealsOf } from "../support/seals.ts";
import {
  clock,
  DAY_MS,
  expired,
  faults,
  gateway,
  HOUR_MS,
  left,
  SOUND,
  script,
  start,
  stop,
  TIME,
  task,
  upstream,
  useDirectory,
} from "./expire-support.ts";
import { dispatch, ended, held, ledger, openEvents, run, until } from "./support.ts";

// Each test waits for background work, on a machine that may be busy.
setDefaultTimeout(60_000);
useDirectory();

/** Moves only the wall clock, except for the last hour, in which expiry runs again. */
function pass(days: number, lastMs = HOUR_MS): void {
  clock.setWall(clock.now() + days * DAY_MS - lastMs);
  clock.advance(lastMs);
}

const read = async (id: string) => (await gateway.call("GET", `/v1/tasks/${id}`)).body;

const events = async (id: string) => allEvents(await openEvents(gateway, id));

describe("after 180 days", () => {
  test("older texts are gone, younger ones stay, and one entry records how far", async () => {
    script();
    await start();
    const old = [await task("first heron"), await task("second heron")];
    pass(100);
    const young = await task("third heron");
    const { seq: last } = (await ledger(gateway)).at(-1) ?? { seq: 0 };
    pass(79);
    expect(await expired()).toEqual([]);
    expect(await read(old[0].id)).toEqual(old[0]);
    pass(2);
    await until(async () => (await expired()).length > 0);
    const [entry] = await expired();
    expect(entry).toMatchObject({
      phase: "single",
      outcome: "succeeded",
      actor: "system",
      channel: "system",
      detail: { payload_days: 180, payloads: 8 },
    });
    const upTo = Number(entry?.detail?.up_to);
    expect(upTo).toBeLessThan(last);
    await until(() => left("first heron", "second heron").length === 0);
    for (const before of old) {
      const after = await read(before.id);
      expect(after).toEqual({
        ...before,
        prompt: null,
        output: null,
        tools_called: before.tools_called.map((call: object) => ({ ...call, arguments: null })),
      });
      const stream = await events(before.id);
      expect(outline(stream)).toEqual([
        "task.created",
        "task.started",
        "tool.call",
        "tool.result",
        "task.finished",
      ]);
      expect(stream.at(-1)?.data).toEqual(after);
    }
    expect(await read(young.id)).toEqual(young);
    expect((await events(young.id)).at(-1)?.data).toEqual(young);
    expect(await faults()).toEqual(SOUND);
  });

  test("nothing is recorded if nothing was left to erase", async () => {
    script();
    await start();
    const { id } = await task("a heron");
    const { seq } = (await ledger(gateway)).find((entry) => entry.task === id) ?? { seq: 0 };
    expect((await gateway.call("DELETE", `/v1/ledger/${seq}/payload`)).status).toBe(204);
    pass(200);
    expect(await faults()).toEqual(SOUND);
    pass(1);
    expect(await faults()).toEqual(SOUND);
    expect(await expired()).toEqual([]);
  });

  test("each workspace has its own entries", async () => {
    script();
    await start();
    const other = await gateway.workspace("other");
    pass(50);
    const mine = await task("mine");
    pass(100);
    await gateway.call("POST", "/v1/agents", {
      token: other,
      body: { name: "scout", owner: "tests", memory_scope: "/" },
    });
    const id = await finishedTask(gateway, "scout", "theirs", other);
    const theirs = (await gateway.call("GET", `/v1/tasks/${id}`, { token: other })).body;
    pass(81);
    await until(async () => (await expired()).length === 1);
    expect(await expired(other)).toEqual([]);
    expect((await read(mine.id)).prompt).toBeNull();
    expect((await gateway.call("GET", `/v1/tasks/${theirs.id}`, { token: other })).body).toEqual(theirs);
    pass(100);
    await until(async () => (await expired(other)).length === 1);
    expect(await faults()).toEqual(SOUND);
  });
});

test("the configured days apply, and a server checks at its start", async () => {
  script();
  await start("ledger: { payload_days: 3 }\n");
  const old = await task("an egret");
  pass(2);
  const young = await task("a stork");
  await stop();
  clock.setWall(clock.now() + 2 * DAY_MS);
  await start("ledger: { payload_days: 3 }\n");
  await until(async () => (await expired()).length === 1);
  expect((await expired())[0]?.detail).toMatchObject({ payload_days: 3, payloads: 4 });
  await until(() => left("an egret").length === 0);
  expect((await read(old.id)).output).toBeNull();
  expect(await read(young.id)).toEqual(young);
});

test("an unfinished task keeps everything since its dispatch, and its texts expire later by their age", async () => {
  script();
  await start();
  // A model may be silent for an hour at most, so expiry has to run before that.
  clock.advance(HOUR_MS / 2);
  const before = await task("before it");
  const hold = held({ chunks: ["Said while it ran. "] });
  upstream.script("a", hold.script);
  const id = await dispatch(gateway, { agent: "scout", prompt: "the long one" });
  await hold.asked;
  script();
  const during = await task("during it");
  pass(181, HOUR_MS / 2);
  await until(async () => (await expired()).length === 1);
  expect((await expired())[0]?.detail).toMatchObject({ payloads: 4 });
  expect((await read(before.id)).prompt).toBeNull();
  expect(await read(during.id)).toEqual(during);
  expect(left("the long one", "during it").length).toBeGreaterThan(0);
  hold.open();
  const finished = await ended(gateway, id);
  expect(finished).toMatchObject({
    status: "succeeded",
    prompt: "the long one",
    output: "Said while it ran. ",
  });

  // At this point the prompt is old enough, but the output is not.
  clock.advance(HOUR_MS);
  await until(async () => (await expired()).length === 2);
  const half = await read(id);
  expect(half).toEqual({ ...finished, prompt: null });
  const stream = await events(id);
  expect(stream.at(-1)?.data).toEqual(half);
  expect(stream.filter(({ event }) => event === "output.delta").map(({ data }) => data.text)).toEqual([
    "Said while it ran. ",
  ]);
  await until(() => left("the long one", "during it").length === 0);
  pass(181);
  await until(async () => (await expired()).length === 3);
  await until(() => left("Said while it ran").length === 0);
  expect((await events(id)).at(-1)?.data).toEqual({ ...half, output: null });
  expect(await faults()).toEqual(SOUND);
});

test("in a long task, arguments expire before later texts", async () => {
  await start();
  const hold = held({ toolCalls: [{ name: "time__now", arguments: { time_zone: "Asia/Famagusta" } }] });
  upstream.script("a", (call, index) => {
    if (index === 0) return { toolCalls: [TIME] };
    const { script: second } = hold;
    return index === 1 && typeof second === "function" ? second(call, index) : { chunks: ["Done."] };
  });
  const id = await dispatch(gateway, { agent: "scout", prompt: "a long one", tools: ["time.now"] });
  await hold.asked;
  pass(90, HOUR_MS / 2);
  hold.open();
  const finished = await ended(gateway, id);
  expect(finished.tools_called).toHaveLength(2);
  pass(91);
  await until(async () => (await expired()).length === 1);
  const half = await read(id);
  const [first, second] = finished.tools_called;
  expect(half).toEqual({ ...finished, prompt: null, tools_called: [{ ...first, arguments: null }, second] });
  const stream = await events(id);
  expect(stream.at(-1)?.data).toEqual(half);
  expect(stream.filter(({ event }) => event === "tool.call").map(({ data }) => data.arguments)).toEqual([
    null,
    { time_zone: "Asia/Famagusta" },
  ]);
  await until(() => left("a long one").length === 0);
  expect(await faults()).toEqual(SOUND);
});

test("the text of a failed or cancelled task expires with its end, although it has no payload", async () => {
  await start();
  const hold = held({ chunks: ["Half a sentence on herons "] });
  upstream.script("a", hold.script);
  const id = await dispatch(gateway, { agent: "scout", prompt: "say it" });
  const stream = (await openEvents(gateway, id)).body?.getReader();
  const decoder = new TextDecoder();
  for (let text = ""; !text.includes("herons"); ) text += decoder.decode((await stream?.read())?.value);
  await stream?.cancel();
  pass(10, HOUR_MS / 2);
  await gateway.call("POST", `/v1/tasks/${id}/cancel`);
  expect(await ended(gateway, id)).toMatchObject({ status: "cancelled", output: null });
  expect(left("sentence on herons").length).toBeGreaterThan(0);
  pass(171);
  await until(async () => (await expired()).length === 1);
  expect((await read(id)).prompt).toBeNull();
  expect(left("sentence on herons").length).toBeGreaterThan(0);
  pass(10);
  await until(async () => (await expired()).length === 2);
  expect((await expired())[1]?.detail).toMatchObject({ payloads: 0 });
  await until(() => left("sentence on herons").length === 0);
  expect(outline(await events(id))).toEqual(["task.created", "task.started", "task.finished"]);
  expect(await faults()).toEqual(SOUND);
});

test("texts that the store refuses to erase are erased an hour later, and recorded as one run", async () => {
  upstream.script("a", { chunks: ["Fine."] });
  await start();
  for (let n = 0; n < 80; n++) await run(gateway, { agent: "scout", prompt: `heron number ${n}` });
  const entries = (await ledger(gateway)).filter(
    ({ phase, action }) => phase === "intent" && action === "task.dispatch",
  );
  const file = ownConnection(gateway.dataDir);
  const count = () => file.query<{ n: number }, []>("SELECT count(*) AS n FROM payloads").get()?.n;
  expect(count()).toBe(160);
  const refused = `OLD.seq = ${entries[70]?.seq}`;
  file.run(
    `CREATE TEMP TRIGGER full BEFORE DELETE ON main.payloads WHEN ${refused} BEGIN SELECT RAISE(ABORT, 'full'); END`,
  );
  pass(181);
  await until(() => count() === 160 - 128);
  expect(await expired()).toEqual([]);
  // Works on a copy: a second writer on the file of a running gateway would count as another program.
  const copy = tempDir();
  cpSync(gateway.dataDir, copy.path, { recursive: true });
  const db = openSqlite(databasePath(copy.path), { seals: sealsOf(copy.path) });
  expect(await accounts(db)).toEqual([]);
  await db.close();
  copy.remove();
  file.run("DROP TRIGGER full");
  await until(async () => {
    clock.advance(HOUR_MS);
    return (await expired()).length > 0;
  });
  expect(count()).toBe(0);
  expect((await expired()).map(({ detail }) => detail?.payloads)).toEqual([160]);
  expect(await faults()).toEqual(SOUND);
});

test("an invented run erases nothing, and no entry vouches for texts erased by hand", async () => {
  const bench = await openLedger();
  for (let n = 0; n < 3; n++) {
    await bench.db.tx(1, (tx) => bench.ledger.append(tx, 1, { ...draft(), input: `text ${n}` }));
  }
  const attacker = bench.own;
  attacker.exec("DELETE FROM payloads WHERE seq = 1");
  for (const run of [
    { upTo: 3, days: 1 },
    { upTo: 3, days: 0 },
    { upTo: 99, days: 1 },
    { upTo: "3", days: 1 },
  ]) {
    const note = JSON.stringify({ done: 0, run: { ...run, payloads: 1 } });
    attacker.query("INSERT OR REPLACE INTO meta (key, value) VALUES ('payload_expiry:1', ?)").run(note);
    const told: string[] = [];
    await expiryOf(bench, { days: 1, told }).run();
    expect(told).toEqual(["expiry_changed"]);
    expect(await bench.db.all("SELECT seq FROM payloads ORDER BY seq")).toEqual([{ seq: 2 }, { seq: 3 }]);
  }
  expect(bench.rows()).toHaveLength(3);
  await bench.close();
});
