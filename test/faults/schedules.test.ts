/**
 * The server is killed at any moment, before, at and after scheduled times. Each time has exactly one result, and the
 * ledger records it.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { chainFaults } from "../ledger/support.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { run, type ServerProcess, serve, serveBriefly, tempDir } from "../support/process.ts";
import { reseal } from "../support/seals.ts";
import { readFile, seeded, settings, unsettled } from "./support.ts";

setDefaultTimeout(240_000);

const ROUNDS = 8;
const random = seeded(20_261_122);
const directory = tempDir();
const data = join(directory.path, "gatehouse-data");
const admin = createSecret(systemRandom);
const options = { cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: admin } };
let fake: FakeModel;
let server: ServerProcess;

/** Schedules by their rule for missed times. Their own cron time is only at New Year. */
const schedules = new Map<string, "skip" | "once">();
/** Every time that the test set, as `<schedule> <time>`. */
const times = new Map<string, "now" | "missed">();

interface Row {
  readonly id: string;
  readonly next_at: number | null;
  readonly last_at: number | null;
}

beforeAll(() => {
  fake = startFakeModel({ record: false });
  fake.script("talks", { chunks: ["fine"], delayMs: 5 });
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, "gatehouse.yaml"), settings(fake));
});
afterAll(async () => {
  await fake.close();
  directory.remove();
});

async function call(method: string, path: string, body?: object) {
  const answer = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  return { status: answer.status, body: (await answer.json()) as any };
}

/** The schedules whose time is not settled yet. No server may be running. */
function unsettledTimes(): { readonly database: Database; readonly due: Row[]; readonly idle: Row[] } {
  const database = new Database(join(data, "gatehouse.db"));
  const rows = database.query<Row, []>("SELECT id, next_at, last_at FROM schedules ORDER BY id").all();
  const isDue = ({ id, next_at: at }: Row) => at !== null && times.has(`${id} ${at}`);
  return { database, due: rows.filter(isDue), idle: rows.filter((row) => !isDue(row)) };
}

/** Sets a time for each idle schedule: about when the next server is up, or one that was missed. */
function setTimes(): void {
  const { database, idle } = unsettledTimes();
  for (const [index, { id }] of idle.entries()) {
    const isMissed = index % 4 === 3;
    const at = Date.now() + (isMissed ? -600_000 - index : 100 + Math.floor(random() * 900));
    if (times.has(`${id} ${at}`)) continue;
    times.set(`${id} ${at}`, isMissed ? "missed" : "now");
    database.run("UPDATE schedules SET next_at = ? WHERE id = ?", [at, id]);
  }
  reseal(database, data, "schedules");
  database.close();
}

test("each time has exactly one task, or is recorded as missed", async () => {
  server = await serve([], options);
  await call("POST", "/v1/agents", { name: "helper", owner: "tests", memory_scope: "/" });
  for (let n = 0; n < 24; n++) {
    const missed = n % 2 === 0 ? "skip" : "once";
    const fields = { name: `s${n}`, agent: "helper", prompt: `of ${n}`, cron: "0 0 1 1 *", tier: 1, missed };
    const made = await call("POST", "/v1/schedules", fields);
    expect(made.status).toBe(201);
    schedules.set(made.body.id, missed);
  }
  await server.end("SIGKILL");
  let killedBefore = 0;
  for (let round = 0; round < ROUNDS; round++) {
    setTimes();
    if (round % 3 === 2) await serveBriefly(100 + random() * 500, options);
    server = await serve([], options);
    await Bun.sleep(random() * 700);
    await server.end("SIGKILL");
    const { database, due } = unsettledTimes();
    database.close();
    killedBefore += due.length;
  }
  // Otherwise every kill came too late to prove anything.
  expect(killedBefore).toBeGreaterThan(0);
  server = await serve([], options);
  const open = async () => {
    const { data: listed } = (await call("GET", "/v1/schedules?limit=200")).body;
    return listed.filter(({ id, next_run_at: next }: { id: string; next_run_at: string | null }) =>
      times.has(`${id} ${next === null ? 0 : Date.parse(next)}`),
    ).length;
  };
  const unfinished = async () => {
    const counts = ["queued", "running"].map(
      async (status) => (await call("GET", `/v1/tasks?status=${status}`)).body.data.length,
    );
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  };
  const deadline = Date.now() + 90_000;
  while ((await open()) > 0 || (await unfinished()) > 0) {
    if (Date.now() > deadline) throw new Error("some times are not settled");
    await Bun.sleep(50);
  }
  expect(await server.end("SIGTERM")).toBe(0);

  const { entries, rows, tasks } = readFile(join(data, "gatehouse.db"));
  const cameTo = new Map<string, string[]>();
  for (const { bytes } of rows) {
    const entry = JSON.parse(bytes);
    const { schedule, scheduled_at: at } = entry.detail ?? {};
    if (entry.action !== "task.dispatch" || schedule === undefined || entry.phase === "outcome") continue;
    const key = `${schedule} ${Date.parse(at)}`;
    const what = entry.phase === "intent" ? "task" : entry.code;
    cameTo.set(key, [...(cameTo.get(key) ?? []), what]);
  }
  expect([...cameTo.keys()].toSorted()).toEqual([...times.keys()].toSorted());
  for (const [key, kind] of times) {
    const missed = schedules.get(key.split(" ")[0] ?? "");
    const expected = kind === "missed" && missed === "skip" ? "missed" : "task";
    expect(`${key} ${kind}: ${cameTo.get(key)}`).toBe(`${key} ${kind}: ${expected}`);
  }
  const made = [...cameTo.values()].filter(([what]) => what === "task").length;
  expect(tasks).toHaveLength(made);
  for (const { finished_at } of tasks) expect(finished_at).not.toBeNull();
  expect(unsettled(entries)).toEqual([]);
  expect(chainFaults(rows)).toEqual([]);
  const verified = await run(["ledger", "verify", "--data", data], options);
  expect(`${verified.code} ${verified.stderr}`).toBe("0 ");
});
