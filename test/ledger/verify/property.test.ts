/** Whichever bit of a row is flipped, and whichever row is removed, the ledger is never reported as holding. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { allFindings, copyOf, makeScene, type Scene, verify } from "./scene.ts";
import { Vandal } from "./vandal.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });
setDefaultTimeout(120_000);

let scene: Scene;

beforeAll(async () => {
  scene = await makeScene();
});

afterAll(() => scene.remove());

/**
 * The verified tables, with the columns that carry meaning. Bits of texts are flipped in their bytes, and the texts
 * stay texts.
 */
const COLUMNS = [
  ["ledger", "bytes", "TEXT"],
  ["ledger", "prev", "BLOB"],
  ["ledger", "leaf", "BLOB"],
  ["ledger_tiles", "hashes", "BLOB"],
  ["ledger_index", "bits", "BLOB"],
  ["ledger_index", "key", "TEXT"],
  ["ledger_checkpoints", "note", "TEXT"],
  ["ledger_keys", "public_key", "BLOB"],
  ["payloads", "salt", "BLOB"],
  ["payloads", "body", "TEXT"],
] as const;
const ROW_KEYS: Readonly<Record<string, string>> = {
  ledger: "workspace_id, seq",
  ledger_tiles: "workspace_id, level, tile",
  ledger_index: "workspace_id, key, block",
  ledger_checkpoints: "workspace_id, size",
  ledger_keys: "id",
  payloads: "workspace_id, seq, kind",
};

/** An SQL condition for the row of this number, counted modulo the number of rows. */
function rowAt(vandal: Vandal, table: string, number: number): string {
  const keys = ROW_KEYS[table] ?? "";
  const count = vandal.database.query<{ n: number }, []>(`SELECT COUNT(*) AS n FROM ${table}`).get()?.n ?? 0;
  return `(${keys}) = (SELECT ${keys} FROM ${table} ORDER BY ${keys} LIMIT 1 OFFSET ${number % count})`;
}

async function findingsAfter(harm: (vandal: Vandal) => string): Promise<void> {
  const copy = copyOf(scene.dataDir);
  try {
    const vandal = new Vandal(copy);
    let what = "";
    vandal.unguarded(() => {
      what = harm(vandal);
    });
    vandal.close();
    const result = await verify(copy.path);
    expect({ what, verdict: result.verdict as string }).toEqual({ what, verdict: "tampered" });
    // One bit or one row causes only a few findings.
    expect(allFindings(result).length).toBeLessThanOrEqual(4);
  } finally {
    copy.remove();
  }
}

test("a bit of a row", async () => {
  const flip = fc.record({
    column: fc.constantFrom(...COLUMNS),
    row: fc.nat(),
    byte: fc.nat(),
    bit: fc.integer({ min: 0, max: 7 }),
  });
  await fc.assert(
    fc.asyncProperty(flip, ({ column: [table, column, type], row, byte, bit }) =>
      findingsAfter((vandal) => {
        const where = rowAt(vandal, table, row);
        const { value } = vandal.database
          .query<{ value: Uint8Array }, []>(
            `SELECT CAST(${column} AS BLOB) AS value FROM ${table} WHERE ${where}`,
          )
          .get() ?? { value: new Uint8Array(1) };
        const at = byte % value.length;
        value[at] = (value[at] ?? 0) ^ (1 << bit);
        vandal.run(`UPDATE ${table} SET ${column} = CAST(? AS ${type}) WHERE ${where}`, value);
        return `${table}.${column} ${where} byte ${at} bit ${bit}`;
      }),
    ),
    { numRuns: 300 },
  );
});

test("a missing row", async () => {
  const tables = ["ledger", "ledger_tiles", "ledger_index", "payloads"];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...tables), fc.nat(), (table, row) =>
      findingsAfter((vandal) => {
        const where = rowAt(vandal, table, row);
        vandal.run(`DELETE FROM ${table} WHERE ${where}`);
        return `${table} ${where}`;
      }),
    ),
    { numRuns: 100 },
  );
});

test("a bit of an entry in the file itself", async () => {
  const rows = (() => {
    const copy = copyOf(scene.dataDir);
    const vandal = new Vandal(copy);
    const all = [...vandal.rows(1), ...vandal.rows(2)];
    vandal.close();
    copy.remove();
    return all;
  })();
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...rows),
      fc.constantFrom("bytes", "leaf"),
      fc.nat(),
      fc.integer({ min: 0, max: 7 }),
      (row, column, byte, bit) =>
        findingsAfter((vandal) => {
          const from = Buffer.from(row[column as "bytes" | "leaf"]);
          const to = Buffer.from(from);
          const at = byte % to.length;
          to[at] = (to[at] ?? 0) ^ (1 << bit);
          vandal.edit(from, to);
          return `${row.seq} ${column} byte ${at} bit ${bit}`;
        }),
    ),
    { numRuns: 200 },
  );
});
