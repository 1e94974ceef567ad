/** The rows belong to the key that sealed them, whatever the database claims about its key and its seals. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync } from "node:fs";
import type { SealedRowsCheck } from "../../../src/store/seals/unsealed-rows.ts";
import { WITHOUT_CLIENTS_CALLS } from "../../support/older-schema.ts";
import { ledger } from "../../tasks/support.ts";
import { openScene, type Scene } from "./support.ts";

setDefaultTimeout(60_000);

let scene: Scene;
beforeEach(async () => {
  scene = await openScene();
});
afterEach(() => scene.remove());

const status = async (secret: string, path = "/v1/agents") =>
  (await scene.gateway.call("GET", path, { token: secret })).status;

const sealings = async () =>
  (await ledger(scene.gateway)).filter(({ action }) => action === "store.seal").map(({ detail }) => detail);

/** Removes what the schemas with seals have added. */
function strip(file: Database): void {
  for (const statement of WITHOUT_CLIENTS_CALLS) file.exec(statement);
  for (const table of [
    "workspaces",
    "agents",
    "tokens",
    "sessions",
    "connectors",
    "schedules",
    "tasks",
    "task_answers",
    "webhook_deliveries",
    "meta",
  ]) {
    file.exec(`ALTER TABLE ${table} DROP COLUMN seal`);
  }
  file.exec("ALTER TABLE tokens DROP COLUMN rotations");
  file.exec("DROP TABLE ledger_node_heads");
  file.exec("PRAGMA user_version = 14");
}

describe("the key cannot be misled by rows without seals: no start mistakes the directory for an older one", () => {
  test("even if a note says that no row was ever sealed", async () => {
    const note = (file: Database) =>
      file.exec("INSERT OR REPLACE INTO meta (key, value) VALUES ('seals', 'unsealed')");
    expect(await scene.refusal(note)).toContain("the rows of the database have no seals");
  });

  test("even if the database is turned into one from before seals", async () => {
    expect(await scene.refusal(strip)).toMatch(
      /(?:rows of the database have no seals|head of the ledgers is not stored), (?:al)?though the key/,
    );
  });
});

test("rows that the operator accepts are recorded, and count from then on", async () => {
  await scene.restart(() => {}, { acceptRows: () => {} });
  await scene.restart();
  expect(await sealings()).toMatchObject([{ accepted: 0 }]);
});

describe("the name of another key in the database", () => {
  const rename = (file: Database) =>
    file.exec("UPDATE meta SET value = '0000000000000000' WHERE key = 'seal_key'");
  const widen = (file: Database) => file.exec(`UPDATE tokens SET scopes = '["admin"]' WHERE name = 'narrow'`);

  async function narrow(): Promise<{ readonly id: string; readonly secret: string }> {
    const body = { name: "narrow", scopes: ["agents:read"] };
    return (await scene.gateway.call("POST", "/v1/tokens", { body })).body;
  }

  test("hides no changed row: a start refuses the row and names both, and so does `ledger verify`", async () => {
    const { id, secret } = await narrow();
    await scene.edit((file) => {
      widen(file);
      rename(file);
    });
    expect(await scene.findings()).toEqual([
      expect.stringContaining("seal_key_changed"),
      expect.stringContaining(`row_changed: The row ${id}`),
    ]);
    await scene.restart();
    expect(await status(secret)).toBe(401);
    expect(scene.named).toEqual(["meta seal_key", `tokens ${id}`]);
    await scene.edit(() => {});
    expect(await scene.findings()).toEqual([expect.stringContaining(`row_changed: The row ${id}`)]);
  });

  test("and no seal at all: the start is refused, and `ledger verify` reports it", async () => {
    await scene.edit((file) => {
      rename(file);
      for (const table of ["workspaces", "tokens", "meta"]) file.exec(`UPDATE ${table} SET seal = NULL`);
    });
    expect(await scene.findings()).toEqual([expect.stringContaining("seals_unknown")]);
    expect(await scene.refusal()).toContain("sealed with another key");
  });

  test("the operator is shown what they would accept, and the ledger names it", async () => {
    const { id, secret } = await narrow();
    const seen: SealedRowsCheck[] = [];
    const refusal = await scene.refusal(
      (file) => {
        widen(file);
        rename(file);
      },
      {
        acceptRows(check) {
          seen.push(check);
          throw new Error("not accepted");
        },
      },
    );
    expect(refusal).toBe("not accepted");
    expect(seen[0]?.broken).toMatchObject([
      { table: "tokens", name: id, workspaceId: 1, values: { scopes: '["admin"]' } },
    ]);
    await scene.restart();
    expect(await status(secret)).toBe(401);
    await scene.restart(() => {}, { acceptRows: () => {} });
    expect(await status(secret)).toBe(200);
    expect(await sealings()).toMatchObject([{ accepted: 1 }, { table: "tokens", row: id }]);
  });
});

test("the key of another directory is refused, and accepting the rows names none of them", async () => {
  const other = await openScene();
  const refusal = await scene.refusal(() =>
    copyFileSync(`${other.dataDir}/secrets.key`, `${scene.dataDir}/secrets.key`),
  );
  expect(refusal).toContain("sealed with another key");
  await scene.restart(() => {}, { acceptRows: () => {} });
  const [sealing, ...more] = await sealings();
  expect(sealing).toEqual({ rows: sealing?.accepted, accepted: expect.any(Number) });
  expect(more).toEqual([]);
  await other.remove();
});
