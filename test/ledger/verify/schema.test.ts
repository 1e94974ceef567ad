/** Attacks on the schema and on the file's pages, below anything that SQL shows. */

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { WITHOUT_LONG_TEXTS } from "../../support/older-schema.ts";
import { INSIDE, tampered, testAttacks, undecided } from "./attack.ts";
import { allFindings, type Copy, inShort, verify, withCopies } from "./scene.ts";
import { Vandal } from "./vandal.ts";

setDefaultTimeout(60_000);

describe("the schema:", () => {
  testAttacks([
    {
      name: "a trigger is left off",
      attack: (v) => v.run("DROP TRIGGER ledger_no_update"),
      alone: tampered("schema_missing"),
    },
    {
      name: "all triggers are left off",
      attack: (v) => {
        for (const table of ["ledger", "ledger_checkpoints"]) {
          const order = table === "ledger" ? "ledger_in_order" : "ledger_checkpoints_in_order";
          for (const name of [order, `${table}_no_update`, `${table}_no_delete`])
            v.run(`DROP TRIGGER ${name}`);
        }
      },
      alone: tampered(...Array.from({ length: 6 }, () => "schema_missing")),
    },
    {
      name: "a trigger is replaced by one that does nothing",
      attack: (v) => {
        v.run("DROP TRIGGER ledger_no_delete");
        v.run("CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger BEGIN SELECT 1; END");
      },
      alone: tampered("schema_changed"),
    },
    {
      name: "a trigger gets another name in the file, with a hex editor",
      attack: (v) => v.edit("ledger_no_delete", "ledger_no_delate"),
      alone: tampered("schema_foreign", "schema_missing"),
    },
    {
      name: "a trigger of another table writes to the texts",
      attack: (v) =>
        v.run("CREATE TRIGGER helpful AFTER UPDATE ON tasks BEGIN DELETE FROM payloads WHERE seq = 1; END"),
      alone: tampered("schema_foreign"),
    },
    {
      name: "a trigger of another table writes to a table that is also read",
      attack: (v) =>
        v.run("CREATE TRIGGER helpful AFTER INSERT ON tasks BEGIN UPDATE meta SET value = 'x'; END"),
      alone: tampered("schema_foreign"),
    },
    {
      name: "a trigger and a view belong to tables unrelated to the ledger",
      attack: (v) => {
        v.run("CREATE TRIGGER helpful AFTER INSERT ON tasks BEGIN DELETE FROM agents; END");
        v.run("CREATE VIEW people AS SELECT * FROM agents");
      },
      alone: tampered("schema_foreign", "schema_foreign"),
    },
    {
      name: "an index is added that hides rows",
      attack: (v) => v.run(`CREATE INDEX quick ON ledger (workspace_id, seq) WHERE seq <> ${INSIDE}`),
      alone: tampered("schema_foreign"),
    },
    {
      name: "a view is added that shows others",
      attack: (v) => v.run("CREATE VIEW evidence AS SELECT * FROM ledger WHERE seq <> 5"),
      alone: tampered("schema_foreign"),
    },
    {
      name: "a column is added",
      attack: (v) => v.run("ALTER TABLE ledger ADD COLUMN note TEXT"),
      alone: tampered("schema_changed"),
    },
    {
      name: "the table of entries is replaced by one that looks the same",
      attack: (v) => {
        v.run("ALTER TABLE ledger RENAME TO hidden");
        v.run("CREATE VIEW ledger AS SELECT * FROM hidden");
      },
      alone: tampered(
        ...Array.from({ length: 3 }, () => "schema_changed"),
        "schema_foreign",
        "schema_missing",
      ),
    },
    {
      name: "the table of checkpoints is dropped",
      attack: (v) => v.run("DROP TABLE ledger_checkpoints"),
      alone: tampered(...Array.from({ length: 4 }, () => "schema_missing")),
    },
    {
      name: "it claims a version from before checkpoints",
      attack: (v) => {
        for (const statement of WITHOUT_LONG_TEXTS) v.run(statement);
        for (const table of ["meta", "workspaces"]) v.run(`ALTER TABLE ${table} DROP COLUMN seal`);
        v.run("PRAGMA user_version = 3");
      },
      alone: tampered(...Array.from({ length: 10 }, () => "schema_foreign"), "schema_changed"),
    },
    {
      name: "it claims a future version",
      attack: (v) => v.run("PRAGMA user_version = 99"),
      alone: undecided("schema_new"),
    },
    {
      name: "it claims another program",
      attack: (v) => v.run("PRAGMA application_id = 7"),
      alone: undecided("not_gatehouse"),
    },
  ]);
});

describe("the file's pages:", () => {
  let copy: Copy;
  let vandal: Vandal;

  withCopies((made) => {
    copy = made;
    vandal = new Vandal(copy);
  });

  /** Removes the last cell from a page's list of cells: its content is still there, but nothing finds it. */
  function hideCell(file: Buffer, page: number, size: number): void {
    const cells = (page - 1) * size + 3;
    file.writeUInt16BE(file.readUInt16BE(cells) - 1, cells);
  }

  const pageSize = () =>
    vandal.database.query<{ page_size: number }, []>("PRAGMA page_size").get()?.page_size ?? 0;

  test("an entry that is taken off its page is missing, and the following ones are not", async () => {
    const size = pageSize();
    const { bytes } = vandal.row(INSIDE);
    vandal.close();
    const file = readFileSync(copy.path);
    hideCell(file, Math.floor(file.indexOf(bytes) / size) + 1, size);
    writeFileSync(copy.path, file);
    const found = inShort(allFindings(await verify(copy.path))).filter((each) => each !== "database_damaged");
    expect(found).toEqual([expect.stringMatching(/^entry_missing 2[789]\d$/)]);
  });

  test.each([
    ["a tile", "ledger_tiles", /^tile_missing/],
    ["a text", "payloads", /^payload_missing/],
  ])(
    "%s that is removed from its index is reported as missing, and its page as damaged",
    async (_, table, missing) => {
      const size = pageSize();
      const root = vandal.database
        .query<{ rootpage: number }, [string]>("SELECT rootpage FROM sqlite_schema WHERE name = ?")
        .get(`sqlite_autoindex_${table}_1`)?.rootpage;
      vandal.close();
      const file = readFileSync(copy.path);
      hideCell(file, root ?? 0, size);
      writeFileSync(copy.path, file);
      const found = inShort(allFindings(await verify(copy.path)));
      expect(found).toContain("database_damaged");
      expect(found).toContainEqual(expect.stringMatching(missing));
    },
  );

  test("the header is overwritten", async () => {
    vandal.close();
    const file = readFileSync(copy.path);
    file.fill(0, 0, 16);
    writeFileSync(copy.path, file);
    const result = await verify(copy.path);
    expect([result.verdict, inShort(allFindings(result))]).toEqual(["tampered", ["database_damaged"]]);
  });

  test("a page of the ledger is overwritten", async () => {
    const size = pageSize();
    const { bytes } = vandal.row(INSIDE);
    vandal.close();
    const file = readFileSync(copy.path);
    const start = Math.floor(file.indexOf(bytes) / size) * size;
    file.fill(0, start, start + size);
    writeFileSync(copy.path, file);
    const result = await verify(copy.path);
    expect(result.verdict).toBe("tampered");
    expect(inShort(allFindings(result))).toContain("database_damaged");
  });

  test("the file is cut short", async () => {
    vandal.close();
    const file = readFileSync(copy.path);
    writeFileSync(copy.path, file.subarray(0, Math.floor(file.length / 2)));
    const result = await verify(copy.path);
    expect(result.verdict).toBe("tampered");
    expect(inShort(allFindings(result))).toContain("database_damaged");
  });

  test("the file is empty", async () => {
    vandal.close();
    writeFileSync(copy.path, "");
    const result = await verify(copy.path);
    expect([result.verdict, inShort(allFindings(result))]).toEqual(["undecided", ["not_gatehouse"]]);
  });
});
