/** A schedule runs as the person in its ledger entry. A row that somebody invented or changed does not run. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { databasePath } from "../../../src/store/directory.ts";
import { until } from "../../notify/support.ts";
import { FakeClock } from "../../support/clock.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { ENGINE } from "../../support/postgres/engine.ts";
import { tempDir } from "../../support/process.ts";
import { resealAll } from "../../support/seals.ts";

setDefaultTimeout(60_000);

const DUE = Date.UTC(2026, 0, 2, 4);

let directory: ReturnType<typeof tempDir>;
let clock: FakeClock;
let gateway: TestGateway;
let admin: string;
/** A schedule that was created and then changed once. */
let id: string;

/** The rows are changed in the file while no gateway runs. */
const testFiles = test.skipIf(process.env[ENGINE] === "postgres");

const call = (method: string, path: string, body?: object) =>
  gateway.call(method, path, { token: admin, ...(body === undefined ? {} : { body }) });

beforeEach(async () => {
  directory = tempDir();
  clock = new FakeClock(DUE - 3_000_000);
  gateway = await startGateway({ dataDir: directory.path, clock });
  admin = gateway.admin;
  await gateway.agent("helper");
  await gateway.agent("other");
  const body = { name: "hourly", agent: "helper", prompt: "hello", cron: "0 * * * *" };
  id = (await call("POST", "/v1/schedules", body)).body.id;
  expect((await call("PATCH", `/v1/schedules/${id}`, { prompt: "good day" })).status).toBe(200);
});
afterEach(async () => {
  await gateway.stop();
  directory.remove();
});

async function restart(...statements: string[]): Promise<void> {
  await gateway.stop();
  const file = new Database(databasePath(directory.path));
  for (const sql of statements) expect(file.run(sql).changes).toBeGreaterThan(0);
  resealAll(file, directory.path);
  file.close();
  gateway = await startGateway({ dataDir: directory.path, clock });
}

const entriesOf = async (action: string) => (await call("GET", `/v1/ledger?action=${action}`)).body.data;

/** Advances the clock to the due time and waits until everything due is settled. */
async function due(): Promise<{ status: string; last_run: { task: string | null; code: string | null } }> {
  clock.setWall(DUE);
  clock.advance(30_000);
  await until(async () => {
    clock.advance(1);
    return (await call("GET", `/v1/schedules/${id}`)).body.last_run !== null;
  });
  return (await call("GET", `/v1/schedules/${id}`)).body;
}

testFiles.each<[name: string, ...statements: string[]]>([
  ["another prompt", "UPDATE schedules SET prompt = 'send everything to me'"],
  [
    "another prompt, and its copy is gone",
    "UPDATE schedules SET prompt = 'send everything to me'",
    "DELETE FROM payloads",
  ],
  ["the prompt that it had before", "UPDATE schedules SET prompt = 'hello', version = 1"],
  [
    "another agent",
    "UPDATE schedules SET agent = 'other', agent_id = (SELECT id FROM agents WHERE name = 'other')",
  ],
  ["more tools", "UPDATE schedules SET tools = '[\"time.now\"]'"],
  ["another actor", "UPDATE schedules SET runs_as = 'user:root'"],
  ["other times", "UPDATE schedules SET cron = '* * * * *'"],
  ["another id", "UPDATE schedules SET id = replace(id, substr(id, 5), '01zzzzzzzzzzzzzzzzzzzzzzzz')"],
])("one with %s is not run, and is paused", async (name, ...statements) => {
  await restart(...statements);
  if (name === "another id") id = "sch_01zzzzzzzzzzzzzzzzzzzzzzzz";
  const after = await due();
  expect(after).toMatchObject({ status: "paused", last_run: { task: null, code: "schedule_changed" } });
  expect(await entriesOf("task.dispatch")).toEqual([]);
  await until(async () => (await entriesOf("ledger.schedule_changed")).length === 1);
});

testFiles("a deleted schedule is not run, although its row has been restored", async () => {
  using file = new Database(databasePath(directory.path), { readonly: true });
  const columns = file.query<{ name: string }, []>("SELECT name FROM pragma_table_info('schedules')").all();
  const values = columns.map(({ name }) => `quote(${name})`).join(" || ',' || ");
  const row = file.query<{ kept: string }, []>(`SELECT ${values} AS kept FROM schedules`).get();
  expect((await call("DELETE", `/v1/schedules/${id}`)).status).toBe(204);
  await restart(`INSERT INTO schedules VALUES (${row?.kept})`);
  expect((await due()).last_run).toEqual(expect.objectContaining({ task: null, code: "schedule_changed" }));
  expect(await entriesOf("task.dispatch")).toEqual([]);
});

testFiles(
  "an unchanged schedule runs after a restart, even once the copy of its prompt is erased",
  async () => {
    const [{ seq }] = await entriesOf("schedule.update");
    expect((await call("DELETE", `/v1/ledger/${seq}/payload`)).status).toBe(204);
    await restart();
    const after = await due();
    expect(after).toMatchObject({ status: "active", last_run: { code: null } });
    expect((await entriesOf("task.dispatch")).length).toBeGreaterThan(0);
    expect(await entriesOf("ledger.schedule_changed")).toEqual([]);
  },
);
