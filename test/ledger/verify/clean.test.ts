/** An untouched ledger holds: at rest, while a server writes to it, and after a server was killed. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeEntry } from "../../../src/ledger/entry.ts";
import { migrate } from "../../../src/store/sqlite/migrate.ts";
import { MIGRATIONS } from "../../../src/store/sqlite/migrations/index.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { startGateway } from "../../support/gateway.ts";
import { serve, tempDir } from "../../support/process.ts";
import { draft } from "../support.ts";
import { allFindings, copyOf, inShort, makeScene, type Scene, verify } from "./scene.ts";
import { Vandal } from "./vandal.ts";

setDefaultTimeout(60_000);

let scene: Scene;

beforeAll(async () => {
  scene = await makeScene();
});

afterAll(() => scene.remove());

const database = (dataDir: string) => join(dataDir, "gatehouse.db");

/** Each file's name, times and bytes. */
function filesIn(dataDir: string): unknown[] {
  return readdirSync(dataDir)
    .sort()
    .map((name) => {
      const file = join(dataDir, name);
      return [name, statSync(file).mtimeMs, Bun.hash(readFileSync(file)).toString(36)];
    });
}

test("at rest, with nothing and with everything that was kept elsewhere; no file is changed", async () => {
  const before = [statSync(scene.dataDir).mtimeMs, ...filesIn(scene.dataDir)];
  for (const brought of [{}, { key: scene.key, checkpoints: scene.checkpoints }]) {
    const result = await verify(database(scene.dataDir), brought);
    expect({ verdict: result.verdict, findings: allFindings(result) }).toEqual({
      verdict: "holds",
      findings: [],
    });
    expect(result.ledgers.map(({ workspace }) => workspace)).toEqual(["default", "other"]);
  }
  expect([statSync(scene.dataDir).mtimeMs, ...filesIn(scene.dataDir)]).toEqual(before);
});

test("with a workspace that has no entry yet, as a killed server leaves it", async () => {
  const directory = tempDir();
  const gateway = await startGateway({ dataDir: directory.path });
  await gateway.call("POST", "/operator/workspaces", {
    token: gateway.gateway.operatorSecret,
    headers: { "gatehouse-operator": "tests" },
    body: { name: "empty" },
  });
  const copy = copyOf(directory.path);
  await gateway.stop();
  const result = await verify(copy.path);
  expect({ verdict: result.verdict, findings: allFindings(result) }).toEqual({
    verdict: "holds",
    findings: [],
  });
  const facts = result.ledgers.find(({ workspace }) => workspace === "empty")?.facts;
  expect(facts).toContainEqual({ label: "Entries", value: "0" });
  expect(facts?.find(({ label }) => label === "Not checked")?.value).toContain(
    "an earlier state was restored",
  );
  copy.remove();
  directory.remove();
});

test("after a process that died when it had created the log and written nothing into it", async () => {
  const directory = tempDir();
  const other = new Database(join(directory.path, "other.db"));
  other.run("PRAGMA journal_mode = WAL");
  other.run("CREATE TABLE any_table (id INTEGER)");
  const header = readFileSync(join(directory.path, "other.db-wal")).subarray(0, 32);
  other.close();
  // The index file that the process made, next to a log that has only its header.
  const [dead, left] = [copyOf(scene.dataDir), copyOf(scene.dataDir)];
  writeFileSync(`${dead.path}-wal`, header);
  const process = new Database(dead.path);
  process.query("SELECT COUNT(*) FROM sqlite_schema").get();
  writeFileSync(`${left.path}-wal`, header);
  cpSync(`${dead.path}-shm`, `${left.path}-shm`);
  process.close();

  const before = filesIn(left.dataDir);
  expect(allFindings(await verify(left.path))).toEqual([]);
  expect(filesIn(left.dataDir)).toEqual(before);
  for (const copy of [dead, left, directory]) copy.remove();
});

test("while a server writes, signs and erases", async () => {
  const directory = tempDir();
  const yaml = "ledger: { checkpoint_every: 7 }";
  const gateway = await startGateway({ dataDir: directory.path, yaml });
  let isDone = false;
  const writing = (async () => {
    for (let round = 0; !isDone; round++) {
      await Promise.all(Array.from({ length: 20 }, () => gateway.call("GET", "/v1/agents")));
      const body = { agent: "helper", prompt: `Round ${round}`, tools: ["time.now"] };
      await gateway.call("POST", "/v1/tasks?stream=true", { body });
      const { body: page } = await gateway.call("GET", "/v1/ledger?action=task.dispatch&order=desc&limit=1");
      await gateway.call("DELETE", `/v1/ledger/${page.data[0]?.seq}/payload`);
    }
  })();
  await gateway.agent("helper");
  const sizes = new Set<string>();
  for (let time = 0; time < 15; time++) {
    await gateway.call("GET", "/v1/agents");
    const result = await verify(database(gateway.dataDir));
    // The next checkpoint vouches for what was erased since the last one.
    const findings = allFindings(result).filter(({ code }) => code !== "payload_unaccounted");
    expect({ findings, isTampered: result.verdict === "tampered" }).toEqual({
      findings: [],
      isTampered: false,
    });
    sizes.add(result.ledgers[0]?.facts.find(({ label }) => label === "Entries")?.value ?? "");
  }
  isDone = true;
  await writing;
  // The ledger grew between verifications.
  expect(sizes.size).toBeGreaterThan(5);
  await gateway.stop();
  expect(allFindings(await verify(database(gateway.dataDir)))).toEqual([]);
  directory.remove();
});

test("an earlier change is found while a server writes, too", async () => {
  const copy = copyOf(scene.dataDir);
  // Stores what entries record about ended tokens; a start that had to read the changed entry would refuse it.
  await (await startGateway({ dataDir: copy.dataDir, acceptRows: () => {} })).stop();
  const vandal = new Vandal(copy);
  vandal.unguarded(() => vandal.set(5, { bytes: vandal.forged(5) }));
  vandal.close();
  const gateway = await startGateway({ dataDir: copy.dataDir });
  let isDone = false;
  const writing = (async () => {
    while (!isDone) await gateway.call("GET", "/v1/agents");
  })();
  for (let time = 0; time < 5; time++) {
    const result = await verify(copy.path);
    expect(allFindings(result)).toMatchObject([{ code: "entry_changed", seq: 5 }]);
  }
  isDone = true;
  await writing;
  await gateway.stop();
  copy.remove();
});

describe("a database with a schema and nothing else", () => {
  const empty = (dataDir: string) => openSqlite(database(dataDir)).close();

  test("belongs to a first start that was killed: nothing is decided, and the next start continues", async () => {
    const directory = tempDir();
    await empty(directory.path);
    const result = await verify(database(directory.path));
    expect([result.verdict, inShort(allFindings(result))]).toEqual(["undecided", ["ledger_empty"]]);
    await (await startGateway({ dataDir: directory.path })).stop();
    expect((await verify(database(directory.path))).verdict).toBe("holds");
    directory.remove();
  });

  test("was emptied if the key next to it has signed ledgers", async () => {
    const copy = copyOf(scene.dataDir);
    rmSync(copy.path);
    await empty(copy.dataDir);
    const result = await verify(copy.path);
    expect([result.verdict, inShort(allFindings(result))]).toEqual(["tampered", ["workspace_missing"]]);
    copy.remove();
  });
});

test("after a server was killed; its files stay unchanged, with and without the log's index", async () => {
  const directory = tempDir();
  const dataDir = join(directory.path, "data");
  cpSync(scene.dataDir, dataDir, { recursive: true });
  const server = await serve(["--data", dataDir], { cwd: directory.path });
  await Promise.all(Array.from({ length: 50 }, () => fetch(`${server.url}/v1/agents`)));
  await server.end("SIGKILL");
  expect(readdirSync(dataDir)).toContain("gatehouse.db-wal");
  for (const _ of ["with", "without"]) {
    const before = filesIn(dataDir);
    const result = await verify(database(dataDir), { key: scene.key, checkpoints: scene.checkpoints });
    expect({ verdict: result.verdict, findings: allFindings(result) }).toEqual({
      verdict: "holds",
      findings: [],
    });
    expect(filesIn(dataDir)).toEqual(before);
    rmSync(join(dataDir, "gatehouse.db-shm"), { force: true });
  }
  directory.remove();
});

test("a directory of the first release, once today's program has started on it", async () => {
  const directory = tempDir();
  const path = database(directory.path);
  const fixture = new Database(path);
  fixture.exec(readFileSync(join(import.meta.dir, "../../store/fixtures/v1.sql"), "utf8"));
  fixture.close();
  const gateway = await startGateway({ dataDir: directory.path });
  await gateway.stop();
  const result = await verify(path);
  expect({ verdict: result.verdict, findings: allFindings(result) }).toEqual({
    verdict: "holds",
    findings: [],
  });
  directory.remove();
});

test("a text whose erasure an early version recorded only by a number is neither present nor missed, once that is signed", async () => {
  const copy = copyOf(scene.dataDir);
  const vandal = new Vandal(copy);
  const last = vandal.row(vandal.rows().length);
  const { ts } = JSON.parse(last.bytes) as { ts: string };
  const at = { seq: last.seq + 1, prev: Buffer.from(last.leaf).toString("hex"), ts };
  vandal.append(encodeEntry(draft({ action: "payload.erase", detail: { payloads: 1 } }), at));
  vandal.run("DELETE FROM payloads WHERE body = 'And now?'");
  vandal.signHead(vandal.stolenKey());
  vandal.close();
  const result = await verify(copy.path);
  expect([result.verdict, allFindings(result).map(({ code }) => code)]).toEqual([
    "undecided",
    ["payload_unaccounted"],
  ]);
  copy.remove();
});

test("a run that erases texts because of their age, interrupted: for entries that are old enough, even in an idle ledger", async () => {
  const copy = copyOf(scene.dataDir);
  const vandal = new Vandal(copy);
  vandal.unguarded(() => {
    vandal.delay(1, -40 * 86_400_000);
    vandal.signAnew(vandal.stolenKey());
  });
  await vandal.rebuild();
  vandal.run("DELETE FROM payloads WHERE body = 'And now?'");
  const note = JSON.stringify({ done: 0, run: { upTo: vandal.rows().length, days: 30, payloads: 1 } });
  vandal.run("INSERT INTO meta (key, value) VALUES ('payload_expiry:1', ?)", note);
  vandal.close();
  const result = await verify(copy.path);
  expect([result.verdict, inShort(allFindings(result))]).toEqual(["undecided", ["payload_expiring"]]);
  copy.remove();
});

test("a directory that is older than checkpoints, on which today's program has to start once", async () => {
  const directory = tempDir();
  const old = new Database(database(directory.path));
  migrate(old, MIGRATIONS.slice(0, 3));
  old.close();
  const result = await verify(database(directory.path));
  expect([result.verdict, allFindings(result).map(({ code }) => code)]).toEqual([
    "undecided",
    ["schema_old"],
  ]);
  directory.remove();
});
