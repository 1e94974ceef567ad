/**
 * Somebody who can write the database restores it to an earlier state. If one workspace's evidence is restored, the
 * heads, which are signed together, reveal it. If all of it is, the checkpoints stored outside do.
 */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../src/base/errors.ts";
import { NODE_HEAD as NODE_HEAD_MIGRATION } from "../../src/store/sqlite/migrations/016-node-head.ts";
import { versionOf } from "../../src/store/sqlite/migrations/index.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { WITHOUT_CLIENTS_CALLS } from "../support/older-schema.ts";
import { run, tempDir } from "../support/process.ts";
import { allFindings, inShort, verify } from "./verify/scene.ts";
import { Vandal } from "./verify/vandal.ts";

setDefaultTimeout(60_000);

const EVIDENCE = ["ledger", "ledger_tiles", "ledger_index", "ledger_checkpoints", "ledger_heads", "payloads"];

let directory: ReturnType<typeof tempDir>;
let dataDir: string;
let path: string;
let checkpointFile: string;
let earlier: string;
let key: string;

beforeEach(async () => {
  directory = tempDir();
  dataDir = join(directory.path, "data");
  mkdirSync(dataDir, { mode: 0o700 });
  path = join(dataDir, "gatehouse.db");
  checkpointFile = join(directory.path, "checkpoints");
  earlier = join(directory.path, "earlier.db");
  const first = await start();
  const other = await first.workspace("other");
  await reads(first, 30);
  await reads(first, 300, other);
  await first.stop();
  copyFileSync(path, earlier);
  const second = await start();
  await reads(second, 5);
  await reads(second, 40, other);
  key = (await second.call("GET", "/v1/ledger/key")).body.vkey as string;
  await second.stop();
});
afterEach(() => directory.remove());

const yaml = () => `ledger: { checkpoint_file: "${checkpointFile}" }`;
function start(file = false): Promise<TestGateway> {
  // The settings file was left by an earlier start.
  rmSync(join(dataDir, "gatehouse.yaml"), { force: true });
  return startGateway({ dataDir, ...(file ? { yaml: yaml() } : {}) });
}

async function reads(gateway: TestGateway, count: number, token?: string): Promise<void> {
  const call = () => gateway.call("GET", "/v1/agents", token === undefined ? {} : { token });
  await Promise.all(Array.from({ length: count }, call));
}

/** Starts, and returns the error that prevented it. */
async function refusal(file = false): Promise<OperatorError> {
  const failed = await start(file).then(
    async (gateway) => {
      await gateway.stop();
      return "it started";
    },
    (error: unknown) => error,
  );
  expect(failed).toBeInstanceOf(OperatorError);
  return failed as OperatorError;
}

/** Restores the rows of these workspaces to their earlier state. */
function putBack(workspaces: readonly number[], more: (database: Database) => void = () => {}): void {
  const vandal = new Vandal({ dataDir, path, remove: () => {} });
  // Its triggers are dropped, because they name the database that they are in.
  const rows = new Vandal({ dataDir, path: earlier, remove: () => {} });
  for (const { name } of rows.triggers()) rows.run(`DROP TRIGGER ${name}`);
  rows.close();
  vandal.run("ATTACH ? AS earlier", earlier);
  vandal.run("PRAGMA foreign_keys = OFF");
  vandal.unguarded(() => {
    for (const table of EVIDENCE) {
      for (const id of workspaces) {
        vandal.run(`DELETE FROM main.${table} WHERE workspace_id = ?`, id);
        vandal.run(`INSERT INTO main.${table} SELECT * FROM earlier.${table} WHERE workspace_id = ?`, id);
      }
    }
    more(vandal.database);
  });
  vandal.close();
}

const NODE_HEAD =
  "DELETE FROM main.ledger_node_heads; INSERT INTO main.ledger_node_heads SELECT * FROM earlier.ledger_node_heads";

describe("the evidence of one workspace, restored to an earlier state, is refused by the start and named by verify:", () => {
  test.each<[string, readonly number[], (database: Database) => void]>([
    ["of a workspace", [2], () => {}],
    ["of the first workspace", [1], () => {}],
    ["with the node's head of then", [2], (database) => database.exec(NODE_HEAD)],
  ])("%s", async (_, workspaces, more) => {
    putBack(workspaces, more);
    const { message, hint } = await refusal();
    expect(message).toContain("are not those that were signed together");
    expect(hint).toContain("gatehouse ledger verify --data DIR");
    const result = await verify(path, { key });
    expect([result.verdict, inShort(allFindings(result))]).toEqual(["tampered", ["heads_changed"]]);
  });

  test("as a process: exit code 1, with a sentence that says what to do", async () => {
    putBack([2]);
    const { code, stderr } = await run(["serve", "--data", dataDir, "--listen", "127.0.0.1:0"], {
      cwd: dataDir,
    });
    expect(code).toBe(1);
    expect(stderr).toContain("restored to an earlier state");
    expect(stderr).toContain("gatehouse ledger verify");
    expect(stderr).not.toContain("    at ");
  });
});

describe("the last checkpoints in the checkpoint file", () => {
  /** Runs a server until the file has a checkpoint of each ledger. */
  async function keep(): Promise<void> {
    const gateway = await start(true);
    await reads(gateway, 3);
    await gateway.stop();
    expect(readFileSync(checkpointFile, "utf8")).toContain("/default\n");
  }

  test("reveal a database that was rolled back as a whole, and the start is refused", async () => {
    await keep();
    copyFileSync(earlier, path);
    const { message, hint } = await refusal(true);
    expect(message).toMatch(
      /has a checkpoint of \d+ entries of workspace "(default|other)", but the database has \d+/,
    );
    expect(hint).toContain("move the checkpoint file away");
    // Without the file nothing reveals it; the hint's way out relies on that.
    renameSync(checkpointFile, `${checkpointFile}.kept`);
    await (await start(true)).stop();
    expect(existsSync(checkpointFile)).toBe(true);
    const verified = await verify(path, { checkpoints: readFileSync(`${checkpointFile}.kept`, "utf8") });
    expect(verified.verdict).toBe("tampered");
  });

  test("reveal a database from before a workspace was created", async () => {
    const gateway = await start(true);
    await gateway.workspace("late");
    await gateway.stop();
    copyFileSync(earlier, path);
    expect((await refusal(true)).message).toMatch(/late, a workspace missing|of \d+ entries of workspace/);
  });

  test("reveal one that was rolled back and then continued by its own server, up to the checkpoint", async () => {
    await keep();
    copyFileSync(earlier, path);
    const gateway = await start();
    await reads(gateway, 60);
    await gateway.stop();
    expect((await refusal(true)).message).toContain("but the database has");
  });

  test.each<[string, () => void]>([
    ["do not exist", () => rmSync(checkpointFile)],
    ["are an empty file", () => writeFileSync(checkpointFile, "")],
    ["end with a note that was cut off", () => appendFileSync(checkpointFile, "gatehouse/0123/default\n99")],
    [
      "end with a note whose size was changed",
      () => {
        const notes = readFileSync(checkpointFile, "utf8");
        appendFileSync(checkpointFile, notes.replace(/\n(\d+)\n/g, "\n9$1\n"));
      },
    ],
    [
      "are mixed with those of another Gatehouse",
      () => {
        const notes = readFileSync(checkpointFile, "utf8");
        appendFileSync(
          checkpointFile,
          notes.replace(/gatehouse\/[0-9a-f]+\//g, "gatehouse/0000000000000000/"),
        );
      },
    ],
    [
      "cannot be read",
      () => {
        rmSync(checkpointFile);
        mkdirSync(checkpointFile);
      },
    ],
  ])("refuse nothing when they %s", async (_, change) => {
    await keep();
    change();
    await (await start(true)).stop();
  });
});

describe("a directory whose heads were signed one by one, by an earlier version,", () => {
  const MARK = "It signs all heads together.\n";

  /** Turns the directory into what that version left, including the key file. */
  function downgrade(): void {
    const vandal = new Vandal({ dataDir, path, remove: () => {} });
    vandal.signSingly(vandal.stolenKey());
    vandal.run("DROP TABLE ledger_node_heads");
    for (const statement of WITHOUT_CLIENTS_CALLS) vandal.run(statement);
    vandal.run(`PRAGMA user_version = ${versionOf(NODE_HEAD_MIGRATION) - 1}`);
    vandal.close();
    const file = join(dataDir, "ledger.key");
    writeFileSync(file, readFileSync(file, "utf8").replace(MARK, ""), { mode: 0o600 });
  }

  test("is refused if it has one entry more than was signed", async () => {
    downgrade();
    const vandal = new Vandal({ dataDir, path, remove: () => {} });
    vandal.append(vandal.forged(vandal.rows().length));
    vandal.close();
    expect((await refusal()).message).toContain("unsigned tail");
  });

  test("is accepted unchanged, and the first start signs the heads together without adding an entry", async () => {
    downgrade();
    expect(allFindings(await verify(path, { key }))).toEqual([]);
    const vandal = new Vandal({ dataDir, path, remove: () => {} });
    const before = vandal.rows(2).length;
    vandal.close();
    await (await start()).stop();
    const after = new Vandal({ dataDir, path, remove: () => {} });
    expect([after.rows(2).length, after.nodeHead()]).toEqual([before, expect.stringContaining("\n2\n")]);
    after.close();
    expect(allFindings(await verify(path, { key }))).toEqual([]);
    expect(readFileSync(join(dataDir, "ledger.key"), "utf8")).toContain(MARK);
    putBack([2]);
    expect((await refusal()).message).toContain("are not those that were signed together");
  });
});
