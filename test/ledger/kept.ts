import { Database } from "bun:sqlite";
import { link, type Tail } from "../../src/ledger/chain.ts";
import { Oracle } from "./proof/oracle.ts";
import { draft, type LedgerBench, type Row } from "./support.ts";

/** A row of `ledger_tiles`: level, place, and the hashes in hexadecimal. */
export type TileRow = readonly [level: number, tile: number, hashes: string];
/** A row of `ledger_index`: key, block, and the bits in hexadecimal. */
export type IndexRow = readonly [key: string, block: number, bits: string];

/** What is stored next to a ledger. */
export interface Kept {
  readonly tiles: readonly TileRow[];
  readonly index: readonly IndexRow[];
}

const WIDTH = 256;

/** What the database contains. */
export function keptIn({ path }: Pick<LedgerBench, "path">, workspaceId: number): Kept {
  const database = new Database(path, { readonly: true });
  try {
    return {
      tiles: database
        .query<Record<string, never>, [number]>(
          "SELECT level, tile, lower(hex(hashes)) FROM ledger_tiles WHERE workspace_id = ? ORDER BY level, tile",
        )
        .values(workspaceId) as unknown as TileRow[],
      index: database
        .query<Record<string, never>, [number]>(
          "SELECT key, block, lower(hex(bits)) FROM ledger_index WHERE workspace_id = ? ORDER BY key, block",
        )
        .values(workspaceId) as unknown as IndexRow[],
    };
  } finally {
    database.close();
  }
}

/** What the definitions require, computed only from the entries. */
export function keptOf(rows: readonly Pick<Row, "leaf" | "bytes">[], oracle = oracleOf(rows)): Kept {
  return { tiles: tilesOf(oracle), index: indexOf(rows) };
}

export function oracleOf(rows: readonly Pick<Row, "leaf">[]): Oracle {
  return new Oracle(rows.map(({ leaf }) => leaf));
}

/** Level n has the roots of 256^n leaves each. Of the leaves, only those that fill whole tiles count. */
function tilesOf(oracle: Oracle): TileRow[] {
  const tiles: TileRow[] = [];
  for (let level = 0; WIDTH ** level <= oracle.size; level++) {
    const width = WIDTH ** level;
    const whole = Math.floor(oracle.size / width);
    for (let first = 0; first < whole; first += WIDTH) {
      const count = Math.min(WIDTH, whole - first);
      if (level === 0 && count < WIDTH) continue;
      const hashes = Array.from({ length: count }, (_, n) =>
        Buffer.from(oracle.root((first + n + 1) * width, (first + n) * width)).toString("hex"),
      );
      tiles.push([level, first / WIDTH, hashes.join("")]);
    }
  }
  return tiles;
}

function indexOf(rows: readonly Pick<Row, "bytes">[]): IndexRow[] {
  const found = new Map<string, bigint>();
  for (const [at, { bytes }] of rows.slice(0, rows.length - (rows.length % WIDTH)).entries()) {
    const entry = JSON.parse(bytes) as Record<string, unknown>;
    const keys = ["agent", "actor", "action", "tier"].filter((field) => entry[field] !== undefined);
    const named = keys.map((field) => `${field}:${entry[field]}`);
    for (const key of entry.oversight === undefined ? named : [...named, "oversight"]) {
      const place = JSON.stringify([key, Math.floor(at / WIDTH)]);
      found.set(place, (found.get(place) ?? 0n) | (1n << BigInt(at % WIDTH)));
    }
  }
  return [...found]
    .map(([place, bits]): IndexRow => {
      const [key, block] = JSON.parse(place) as [string, number];
      // The lowest bit of the first byte comes first, so the number's bytes are in little-endian order.
      const hex = bits.toString(16).padStart(WIDTH / 4, "0");
      return [key, block, Buffer.from(hex, "hex").reverse().toString("hex")];
    })
    .sort(([a, m], [b, n]) => Buffer.compare(Buffer.from(a), Buffer.from(b)) || m - n);
}

/** Appends entries to a workspace as a version did that stored nothing next to them, all in one transaction. */
export function writeBare(bench: LedgerBench, workspaceId: number, count: number): void {
  writeBareInto(bench.own, workspaceId, count, bench.clock.now());
}

/** The same, for a store on which no ledger is open yet. */
export function writeBareAt(path: string, workspaceId: number, count: number): void {
  const database = new Database(path);
  database.exec("PRAGMA synchronous = OFF");
  writeBareInto(database, workspaceId, count, 0);
  database.close();
}

function writeBareInto(database: Database, workspaceId: number, count: number, now: number): void {
  const last = database
    .query<{ seq: number; leaf: Uint8Array }, [number]>(
      "SELECT seq, leaf FROM ledger WHERE workspace_id = ? ORDER BY seq DESC LIMIT 1",
    )
    .get(workspaceId);
  let tail: Tail = {
    seq: last?.seq ?? 0,
    leaf: last?.leaf ?? new Uint8Array(32),
    leafHex: Buffer.from(last?.leaf ?? new Uint8Array(32)).toString("hex"),
    ts: 0,
  };
  const insert = database.prepare(
    "INSERT INTO ledger (workspace_id, seq, prev, leaf, bytes) VALUES (?, ?, ?, ?, ?)",
  );
  database.transaction(() => {
    for (let n = 0; n < count; n++) {
      const next = link(tail, variedDraft(tail.seq), now);
      insert.run(workspaceId, next.tail.seq, next.prev, next.tail.leaf, next.bytes);
      tail = next.tail;
    }
  })();
  insert.finalize();
}

/** Entries that differ in everything that the index knows. */
export function variedDraft(n: number) {
  return draft({
    actor: `token:${n % 3}`,
    action: n % 100 === 0 ? "rare.thing" : "test.note",
    agent: n % 4 === 0 ? undefined : `a${n % 4}`,
    tier: n % 5 === 0 ? undefined : n % 5,
    oversight: n % 7 === 0 ? { person: "ann", decision: "approve" } : undefined,
    task: `${n}`,
  });
}
