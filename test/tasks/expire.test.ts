/**
 * `ledger.payload_days`: prompts, outputs and arguments are erased when they are old enough, also from tasks' events
 * and from every file.
 */
import { afterAll, afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { databasePath } from "../../src/store/directory.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { finishedTask } from "../access/routes.ts";
import { readFile } from "../faults/support.ts";
import { accounts, expiryOf } from "../ledger/payload-support.ts";
import { chainFaults, chainsOf, draft, listsOf, openLedger } from "../ledger/support.ts";
import { FakeClock } from "../support/clock.ts";
import { allEvents, outline } from "../support/events.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { serveBriefly, tempDir } from "../support/process.ts";
import { SEALS, sealsOf } from "../support/seals.ts";
import { leftovers } from "../vault/files-support.ts";
import { dispatch, ended, held, ledger, openEvents, run, until, yamlOf } from "./support.ts";

// Each test waits for background work, on a machine that may be busy.
setDefaultTimeout(60_000);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ARGUMENT = "Antarctica/Troll";
const TIME = { name: "time__now", arguments: { time_zone: ARGUMENT } };

const clock = new FakeClock();
const upstream = startFakeModel();
let directory: ReturnType<typeof tempDir>;
let gateway: TestGateway;
let isOpen = false;

beforeEach(() => {
  directory = tempDir();
});
afterEach(async () => {
  if (isOpen) await stop();
  directory.remove();
});
afterAll(() => upstream.close());

/** Starts a gateway on the test's directory, with one agent. */
async function start(more = ""): Promise<void> {
  const yaml = yamlOf(upstream.url, { tiers: { 1: ["a"] }, timeoutMs: 3_600_000 }) + more;
  gateway = await startGateway({ clock, yaml, dataDir: directory.path });
  isOpen = true;
  if ((await gateway.call("GET", "/v1/agents/scout")).status === 404) await gateway.agent("scout");
}

async function stop(): Promise<void> {
  isOpen = false;
  await gateway.stop();
}

/** Moves only the wall clock, except for the last hour, in which expiry looks again. */
function pass(days: number, lastMs = HOUR_MS): void {
  clock.setWall(clock.now() + days * DAY_MS - lastMs);
  clock.advance(lastMs);
}

const task = (prompt: string) => run(gateway, { agent: "scout", prompt, tools: ["time.now"] });
const read = async (id: string) => (await gateway.call("GET", `/v1/tasks/${id}`)).body;
const events = async (id: string) => allEvents(await openEvents(gateway, id));
const left = (...texts: string[]) => leftovers(gateway.dataDir, Object.fromEntries(texts.map((t) => [t, t])));
const expired = async (token?: string) =>
  (await ledger(gateway, token)).filter(({ action }) => action === "payload.expire");

/** Stops the gateway and returns what is wrong with the store that it leaves; then another gateway starts. */
async function faults(): Promise<unknown> {
  const { dataDir } = gateway;
  await stop();
  const { rows, integrity } = readFile(databasePath(dataDir));
  const db = openSqlite(databasePath(dataDir), { seals: sealsOf(dataDir) });
  const chains = Map.groupBy(rows, ({ workspace_id }) => workspace_id);
  const chain = [...chains.values()].flatMap(chainFaults);
  const found = { integrity, chain, accounts: await accounts(db) };
  await db.close();
  await start();
  return found;
}
const SOUND = { integrity: [{ integrity_check: "ok" }], chain: [], accounts: [] };

function script(model: FakeModel = upstream): void {
  model.script("a", ({ body }) => {
    const [last, first] = [body.messages.at(-1), body.messages.find(({ role }) => role === "user")];
    return last?.role === "tool"
      ? { chunks: ["Answer to ", String(first?.content)] }
      : { chunks: ["Looking. "], toolCalls: [TIME] };
  });
}

describe("after 180 days", () => {
  test("older texts are gone, younger ones stay, and one entry says up to where", async () => {
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
  // A model may be silent for an hour at most, so expiry has to look before that.
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

  // By now the prompt is old enough, but the output is not.
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
  // Of a copy: a second writer on the file of a gateway that runs would be another program.
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
    await bench.db.tx((tx) => bench.ledger.append(tx, 1, { ...draft(), input: `text ${n}` }));
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

describe("a process that dies midway", () => {
  test("between any two transactions leaves a consistent store, and the next run completes the work", async () => {
    const bench = await openLedger();
    try {
      for (let n = 0; n < 300; n++) {
        await bench.db.tx((tx) =>
          bench.ledger.append(tx, 1, { ...draft(), input: `in ${n}`, output: `out ${n}` }),
        );
      }
      bench.clock.advance(2 * DAY_MS);
      const copies: string[] = [];
      const copy = () => {
        const path = join(directory.path, String(copies.length), "gatehouse.db");
        mkdirSync(dirname(path));
        for (const end of ["", "-wal"]) cpSync(bench.path + end, path + end);
        copies.push(path);
      };
      copy();
      await expiryOf(bench, { after: copy }).run();
      expect(copies.length).toBeGreaterThan(9);
      for (const [n, path] of copies.entries()) {
        const db = openSqlite(path, { seals: SEALS });
        expect(await accounts(db)).toEqual([]);
        const { ledger, heads } = await chainsOf(db, dirname(bench.path), bench.clock);
        const later = { db, clock: bench.clock, ledger, lists: listsOf(db, heads) };
        await expiryOf(later).run();
        expect(await accounts(db)).toEqual([]);
        const rows = await db.all<{ detail: string }>(
          "SELECT bytes->>'detail' AS detail FROM ledger WHERE bytes->>'action' = 'payload.expire'",
        );
        expect([n, rows.map(({ detail }) => JSON.parse(detail))]).toEqual([
          n,
          [{ payload_days: 1, payloads: 600, up_to: 300 }],
        ]);
        expect(await db.all("SELECT seq FROM payloads")).toEqual([]);
        await db.close();
      }
    } finally {
      await bench.close();
    }
  });

  test("after its entry, but before the files lose the texts, leaves that to the next start", async () => {
    script();
    await start();
    for (let n = 0; n < 60; n++) await task(`a heron of ${n}`);
    // The clock's timers stand still from here on, so this gateway does not rewrite the files.
    clock.setWall(clock.now() + 300 * DAY_MS);
    await stop();
    await start();
    await until(async () => (await expired()).length > 0);
    const dead = directory;
    directory = tempDir();
    cpSync(dead.path, directory.path, { recursive: true });
    await stop();
    dead.remove();
    const database = databasePath(directory.path);
    expect(existsSync(`${database}-wal`)).toBe(true);
    await start();
    await until(() => {
      clock.advance(1_000);
      return left("a heron of").length === 0;
    });
    expect(await faults()).toEqual(SOUND);
  });

  test("killed repeatedly while starting, erases each text once and records it", async () => {
    script();
    // A server with the system's clock must find these texts old.
    clock.setWall(Date.now() - 300 * DAY_MS);
    await start();
    for (let n = 0; n < 60; n++) await task(`a heron of ${n}`);
    await stop();
    const env = { GATEHOUSE_DATA: directory.path };
    for (const ms of [300, 450, 600, 750, 900]) await serveBriefly(ms, { cwd: directory.path, env });
    clock.setWall(Date.now());
    await start();
    await until(async () => (await expired()).length > 0);
    expect((await expired()).reduce((sum, { detail }) => sum + Number(detail?.payloads), 0)).toBe(240);
    // If the last server died after the entry and before it rewrote the files, this one still has to do that.
    await until(() => {
      clock.advance(1_000);
      return left("a heron of").length === 0;
    });
    expect(await faults()).toEqual(SOUND);
  });
});
