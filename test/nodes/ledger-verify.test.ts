/** What a superuser of the database has changed is named by a verification of the store. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { DirectoryVerification } from "../../src/ledger/verify/directory.ts";
import { verifySharedStore } from "../../src/ledger/verify/shared-store.ts";
import { tools } from "../../src/ledger/verify/tools.ts";
import { Snapshots } from "../../src/store/postgres/snapshots.ts";
import { requireMasterKey, type SecretKey } from "../../src/store/secret-key.ts";
import { MASTER_KEY } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";

setDefaultTimeout(60_000);

const UNPROTECT =
  "ALTER TABLE ledger DISABLE TRIGGER ALL; ALTER TABLE ledger_checkpoints DISABLE TRIGGER ALL;";
const PROTECT = "ALTER TABLE ledger ENABLE TRIGGER ALL; ALTER TABLE ledger_checkpoints ENABLE TRIGGER ALL;";

describe.skipIf(missingPostgres !== undefined)("a store of two nodes", () => {
  let started: TestNodes;
  /** Makes the store what it was after the nodes had worked. */
  let restore: () => Promise<unknown>;

  beforeAll(async () => {
    started = await startNodes(2);
    const { database, nodes } = started;
    for (const node of nodes) {
      await node.agent(`agent-${nodes.indexOf(node)}`);
      for (let count = 0; count < 150; count++) await node.call("GET", "/v1/agents");
    }
    const tables = ["ledger", "ledger_checkpoints", "ledger_tiles", "ledger_tails", "ledger_keys"];
    for (const node of nodes) await node.stop();
    for (const table of tables) await database.query(`CREATE TABLE kept_${table} AS SELECT * FROM ${table}`);
    const put = tables.map(
      (table) => `DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM kept_${table};`,
    );
    restore = () => database.query(`${UNPROTECT} ${put.join(" ")} ${PROTECT}`);
  });
  afterAll(() => started.database.drop());

  async function verify(): Promise<DirectoryVerification> {
    const snapshots = new Snapshots({ url: started.database.url });
    try {
      const trust = { keys: [], checkpoints: [] };
      const secretKey: SecretKey = {
        ...requireMasterKey(MASTER_KEY),
        ...{ from: "setting", hasSealed: true, markSealed() {} },
      };
      return await verifySharedStore(
        (work) => snapshots.read(work),
        { trust, workspace: null, secretKey },
        tools,
      );
    } finally {
      await snapshots.close();
    }
  }

  const codesOf = ({ findings, ledgers }: DirectoryVerification) =>
    [...findings, ...ledgers.flatMap((ledger) => [...ledger.findings])].map(({ code }) => code);

  test("holds", async () => {
    const result = await verify();
    expect(codesOf(result)).toEqual([]);
    expect(result.verdict).toBe("holds");
    expect(result.ledgers.map(({ workspace }) => workspace)).toEqual(["default"]);
  });

  test("is verified by the command, which tells apart an answer and none", async () => {
    const run = (url: string) =>
      Bun.spawn([process.execPath, "src/main.ts", "ledger", "verify", "--json", "--store", url], {
        env: { ...process.env, GATEHOUSE_MASTER_KEY: MASTER_KEY },
        stdout: "pipe",
        stderr: "ignore",
      });
    const healthy = run(started.database.url);
    expect(JSON.parse(await new Response(healthy.stdout).text()).verdict).toBe("holds");
    expect(await healthy.exited).toBe(0);
    expect(await run("postgres://nobody:x@127.0.0.1:1/none").exited).toBe(3);
  });

  test("names triggers that are disabled, and rights that were granted", async () => {
    await started.database.query(UNPROTECT);
    expect(codesOf(await verify())).toEqual(Array(4).fill("protection_removed"));
    await started.database.query(`${PROTECT} GRANT UPDATE ON ledger TO PUBLIC`);
    expect(codesOf(await verify())).toEqual(["protection_removed"]);
    await started.database.query("REVOKE UPDATE ON ledger FROM PUBLIC");
    expect((await verify()).verdict).toBe("holds");
  });

  test.each<[name: string, statement: string, seq: number | undefined]>([
    [
      "an edited entry",
      "UPDATE ledger SET bytes = replace(bytes, 'agent.list', 'agent.read') WHERE seq = 77",
      77,
    ],
    [
      "an edited entry with its own hash",
      "UPDATE ledger SET bytes = replace(bytes, 'agent.list', 'agent.read'), leaf = sha256('\\x00' || convert_to(replace(bytes, 'agent.list', 'agent.read'), 'UTF8')) WHERE seq = 77",
      undefined,
    ],
    ["a deleted entry", "DELETE FROM ledger WHERE seq = 100", undefined],
    ["deleted last entries", "DELETE FROM ledger WHERE seq > 250", undefined],
    ["an emptied ledger", "TRUNCATE ledger", undefined],
    [
      "an added entry",
      "INSERT INTO ledger SELECT workspace_id, seq + 1, leaf, leaf, bytes FROM ledger ORDER BY seq DESC LIMIT 1",
      undefined,
    ],
    [
      "a deleted checkpoint",
      "DELETE FROM ledger_checkpoints WHERE size = (SELECT MAX(size) FROM ledger_checkpoints)",
      undefined,
    ],
    [
      "a changed tile",
      "UPDATE ledger_tiles SET hashes = overlay(hashes PLACING '\\x00' FROM 100 FOR 1)",
      undefined,
    ],
    ["a removed head", "DELETE FROM ledger_tails", undefined],
    [
      "a changed head",
      "UPDATE ledger_tails SET head = replace(head, 'workspace 1', 'workspace 2')",
      undefined,
    ],
    [
      "a changed edge",
      "UPDATE ledger_tails SET edge = overlay(edge PLACING '\\x00' FROM 1 FOR 1)",
      undefined,
    ],
    ["another key", "UPDATE ledger_keys SET public_key = sha256('x')", undefined],
  ])("names %s", async (_, statement, seq) => {
    try {
      await started.database.query(`${UNPROTECT} ${statement}; ${PROTECT}`);
      const result = await verify();
      expect(result.verdict).toBe("tampered");
      const found = [...result.findings, ...result.ledgers.flatMap((ledger) => [...ledger.findings])];
      expect(found.length).toBeGreaterThan(0);
      if (seq !== undefined) expect(found.map((finding) => finding.seq)).toContain(seq);
    } finally {
      await restore();
    }
    expect(codesOf(await verify())).toEqual([]);
  });

  test("names a sealed row that was changed", async () => {
    await started.database.query('UPDATE tokens SET scopes = \'["admin","x"]\'');
    expect((await verify()).verdict).not.toBe("holds");
  });
});
