/** A ledger that nobody has touched holds: at rest, while a server writes to it, and after one that was killed. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { startGateway } from "../../support/gateway.ts";
import { serve, tempDir } from "../../support/process.ts";
import { allFindings, copyOf, makeScene, type Scene, verify } from "./scene.ts";
import { Vandal } from "./vandal.ts";

setDefaultTimeout(60_000);

let scene: Scene;

beforeAll(async () => {
  scene = await makeScene();
});

afterAll(() => scene.remove());

const database = (dataDir: string) => join(dataDir, "gatehouse.db");

/** Names, times and bytes. */
function filesIn(dataDir: string): unknown[] {
  return readdirSync(dataDir)
    .sort()
    .map((name) => {
      const file = join(dataDir, name);
      return [name, statSync(file).mtimeMs, Bun.hash(readFileSync(file)).toString(36)];
    });
}

test("at rest, with nothing and with all that was kept elsewhere; no file is other than before", async () => {
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

test("with a workspace that has no entry yet", async () => {
  const copy = copyOf(scene.dataDir);
  const vandal = new Vandal(copy);
  vandal.run("INSERT INTO workspaces (id, name, created_at) VALUES (3, 'empty', 0)");
  vandal.close();
  const result = await verify(copy.path);
  expect({ verdict: result.verdict, findings: allFindings(result) }).toEqual({
    verdict: "holds",
    findings: [],
  });
  expect(result.ledgers.find(({ workspace }) => workspace === "empty")?.facts).toContainEqual({
    label: "Entries",
    value: "0",
  });
  copy.remove();
});

test("while a server writes, and signs, and erases", async () => {
  const gateway = await startGateway({ yaml: "ledger: { checkpoint_every: 7 }" });
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
    expect(allFindings(result)).toEqual([]);
    sizes.add(result.ledgers[0]?.facts.find(({ label }) => label === "Entries")?.value ?? "");
  }
  isDone = true;
  await writing;
  // It was another ledger each time.
  expect(sizes.size).toBeGreaterThan(5);
  await gateway.stop();
});

test("after a server was killed; what it left behind stays as it is, with and without the log's index", async () => {
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

test("a directory that is older than checkpoints, which the program of today has to start on once", async () => {
  const directory = tempDir();
  const gateway = await startGateway({ dataDir: directory.path });
  await gateway.stop();
  const vandal = new Vandal({ dataDir: directory.path, path: database(directory.path), remove: () => {} });
  for (const table of ["ledger_tiles", "ledger_index", "ledger_checkpoints", "ledger_keys"]) {
    vandal.run(`DROP TABLE ${table}`);
  }
  vandal.run("PRAGMA user_version = 3");
  vandal.close();
  const result = await verify(database(directory.path));
  expect([result.verdict, allFindings(result).map(({ code }) => code)]).toEqual([
    "undecided",
    ["schema_old"],
  ]);
  directory.remove();
});
