/**
 * Everything that somebody with write access to its files can do to a data directory, without this program's checks.
 */
import { Database } from "bun:sqlite";
import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { completeLedger } from "../../../src/ledger/ledger.ts";
import { checkpointText } from "../../../src/ledger/proof/checkpoint.ts";
import {
  type CheckpointSeries,
  extendSeries,
  headText,
  NO_CHECKPOINTS,
  seriesLine,
} from "../../../src/ledger/proof/head.ts";
import { headLeaf, keysDigest, nodeHeadText } from "../../../src/ledger/proof/node-head.ts";
import { formatNote, keyIdOf, type NoteSignature } from "../../../src/ledger/proof/note.ts";
import { sha256, TREE } from "../../../src/ledger/tree-hash.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { Oracle } from "../proof/oracle.ts";
import type { TestSigner } from "../proof/signing.ts";
import type { Copy } from "./scene.ts";

export interface Row {
  readonly seq: number;
  readonly prev: Uint8Array;
  readonly leaf: Uint8Array;
  readonly bytes: string;
}

/** A signer: the directory's own key, or another. */
export type Sign = (origin: string, text: string) => NoteSignature;

const ZEROS = new Uint8Array(32);
/** Columns that name entries. */
const NAMING = [
  ["tasks", "dispatch_seq"],
  ["tasks", "finish_seq"],
  ["tool_calls", "intent_seq"],
  ["tool_calls", "outcome_seq"],
] as const;

export class Vandal {
  readonly copy: Copy;
  readonly database: Database;

  constructor(copy: Copy) {
    this.copy = copy;
    this.database = new Database(copy.path);
  }

  close(): void {
    this.database.close();
  }

  run(sql: string, ...values: (string | number | Uint8Array | null)[]): void {
    this.database.prepare(sql).run(...values);
  }

  rows(workspace = 1): Row[] {
    return this.database
      .query<Row, [number]>("SELECT seq, prev, leaf, bytes FROM ledger WHERE workspace_id = ? ORDER BY seq")
      .all(workspace);
  }

  row(seq: number, workspace = 1): Row {
    const row = this.rows(workspace).find((each) => each.seq === seq);
    if (!row) throw new Error(`there is no entry ${seq}`);
    return row;
  }

  /** The numbers of an action's entries, in order. */
  seqsOf(action: string, phase: string): number[] {
    const all = this.rows().map(
      ({ bytes }) => JSON.parse(bytes) as { seq: number; action: string; phase: string },
    );
    return all.filter((entry) => entry.action === action && entry.phase === phase).map(({ seq }) => seq);
  }

  triggers(): { readonly name: string; readonly sql: string }[] {
    return this.database
      .query<{ name: string; sql: string }, []>(
        "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger'",
      )
      .all();
  }

  /** Drops every trigger, does the work and restores the triggers, so the schema reveals nothing. */
  unguarded(work: () => void): void {
    const triggers = this.triggers();
    for (const { name } of triggers) this.database.exec(`DROP TRIGGER ${name}`);
    work();
    for (const { sql } of triggers) this.database.exec(sql);
  }

  /** Changes columns of an entry's row. */
  set(seq: number, columns: Partial<Omit<Row, "seq">>, workspace = 1): void {
    for (const [column, value] of Object.entries(columns)) {
      this.run(`UPDATE ledger SET ${column} = ? WHERE workspace_id = ? AND seq = ?`, value, workspace, seq);
    }
  }

  /** Appends bytes after the last entry, as any program can that knows the format. */
  append(bytes: string, workspace = 1): void {
    const last = this.rows(workspace).at(-1);
    const prev = last?.leaf ?? ZEROS;
    const leaf = Oracle.leafHash(bytes);
    this.run("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", workspace, (last?.seq ?? 0) + 1, prev, leaf, bytes);
  }

  /** An entry's bytes with another actor. */
  forged(seq: number, workspace = 1): string {
    return this.row(seq, workspace).bytes.replace(/"actor":"[^"]*"/, '"actor":"token:tok_somebody_else"');
  }

  /** Lets outcomes and the rows of tasks name entries by the numbers that these have once the entry `removed` is gone. */
  renumberReferences(removed: number, workspace = 1): void {
    for (const { seq, bytes } of this.rows(workspace)) {
      const moved = bytes.replace(/"ref":(\d+)/, (whole, ref: string) =>
        Number(ref) > removed ? `"ref":${Number(ref) - 1}` : whole,
      );
      if (moved !== bytes) this.set(seq, { bytes: moved }, workspace);
    }
    for (const [table, column] of NAMING) {
      const sql = `UPDATE ${table} SET ${column} = ${column} - 1 WHERE workspace_id = ? AND ${column} > ?`;
      this.run(sql, workspace, removed);
    }
  }

  /** Recomputes numbers, predecessors and hashes, so the chain is consistent whatever was changed in it. */
  rechain(from: number, workspace = 1): void {
    const rows = this.rows(workspace);
    const kept = rows.filter(({ seq }) => seq < from);
    let prev = kept.at(-1)?.leaf ?? ZEROS;
    let seq = from;
    for (const row of rows.filter((each) => each.seq >= from)) {
      const bytes = row.bytes
        .replace(/"prev":"[0-9a-f]{64}"/, `"prev":"${Buffer.from(prev).toString("hex")}"`)
        .replace(`"seq":${row.seq},`, `"seq":${seq},`);
      const leaf = Oracle.leafHash(bytes);
      this.run(
        "UPDATE ledger SET seq = ?, prev = ?, leaf = ?, bytes = ? WHERE workspace_id = ? AND seq = ?",
        seq,
        prev,
        leaf,
        bytes,
        workspace,
        row.seq,
      );
      prev = leaf;
      seq += 1;
    }
  }

  /**
   * Copies the first row of a table to another workspace. The workspace's number is a text, because it may be large.
   */
  copyTo(table: string, workspace: string): void {
    const columns = this.database
      .query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)")
      .all(table)
      .map(({ name }) => (name === "workspace_id" ? workspace : name));
    this.run(`INSERT INTO ${table} SELECT ${columns.join(", ")} FROM ${table} LIMIT 1`);
  }

  /** Delays an entry and all later ones by `ms`. */
  delay(from: number, ms: number, workspace = 1): void {
    for (const { seq, bytes } of this.rows(workspace).filter((row) => row.seq >= from)) {
      const later = bytes.replace(/"ts":"([^"]*)"/, (_, ts) => {
        const time = new Date(Date.parse(ts) + ms);
        return `"ts":"${time.toISOString()}"`;
      });
      this.set(seq, { bytes: later }, workspace);
    }
    this.rechain(from, workspace);
  }

  removeCheckpoints(above = 0, workspace = 1): void {
    this.run("DELETE FROM ledger_checkpoints WHERE workspace_id = ? AND size > ?", workspace, above);
  }

  /**
   * The smallest size of at least `least` that has a stored checkpoint. Sizes vary, because they depend on when the
   * first was signed.
   */
  checkpointAt(least: number, workspace = 1): number {
    const sizes = this.#notes(workspace).map(({ size }) => size);
    return Math.min(...sizes.filter((size) => size >= least));
  }

  /** Re-signs the stored checkpoints over the present entries, and removes those past the end. */
  signAnew(signer: Sign, workspace = 1): void {
    const leaves = this.rows(workspace).map(({ leaf }) => leaf);
    const oracle = new Oracle(leaves);
    for (const { size, note } of this.#notes(workspace)) {
      const [origin = ""] = note.split("\n");
      this.run("DELETE FROM ledger_checkpoints WHERE workspace_id = ? AND size = ?", workspace, size);
      if (size > leaves.length) continue;
      const text = checkpointText({ origin, size, root: oracle.root(size) });
      const anew = formatNote({ text, signatures: [signer(origin, text)] });
      this.run("INSERT INTO ledger_checkpoints VALUES (?, ?, ?, 0)", workspace, size, anew);
    }
    this.signHead(signer, workspace);
  }

  /** Recomputes a ledger's head from its entries and checkpoints, and signs all heads together. */
  signHead(signer: Sign, workspace = 1): void {
    this.makeHead(workspace);
    this.signTogether(signer);
  }

  /** Recomputes a ledger's head from its entries and checkpoints. */
  makeHead(workspace = 1): void {
    this.setHead(headText(this.#headOf(workspace)), workspace);
  }

  /** Signs all ledgers' stored heads together. */
  signTogether(signer: Sign): void {
    const heads = this.#heads();
    const origin = this.#originOf(1).replace(/\/[^/]*$/, "");
    const root = new Oracle(heads.map(({ note }) => headLeaf(TREE, note))).root(heads.length);
    const text = nodeHeadText({ origin, count: heads.length, root, keys: this.#keys() });
    this.setNodeHead(formatNote({ text, signatures: [signer(origin, text)] }));
  }

  /** Turns the heads into those of an earlier version, each signed separately. */
  signSingly(signer: Sign): void {
    for (const { workspace_id: workspace } of this.#heads()) {
      const { workspaceId: _, checkpoints, ...head } = this.#headOf(workspace);
      const text = `${checkpointText(head)}gatehouse-ledger-head/1\n${seriesLine(checkpoints)}\nkeys ${this.#keys().toBase64()}\n`;
      this.setHead(formatNote({ text, signatures: [signer(head.origin, text)] }), workspace);
    }
  }

  nodeHead(): string {
    return this.database.query<{ note: string }, []>("SELECT note FROM ledger_node_heads").get()?.note ?? "";
  }

  setNodeHead(note: string): void {
    this.run("UPDATE ledger_node_heads SET note = ?", note);
  }

  #headOf(workspaceId: number) {
    const size = this.rows(workspaceId).length;
    let checkpoints: CheckpointSeries = NO_CHECKPOINTS;
    for (const { note } of this.#notes(workspaceId)) checkpoints = extendSeries(sha256, checkpoints, note);
    return {
      ...{ origin: this.#originOf(workspaceId), workspaceId, size, checkpoints },
      root: this.#rootOf(workspaceId, size),
    };
  }

  #heads(): { readonly workspace_id: number; readonly note: string }[] {
    return this.database
      .query<{ workspace_id: number; note: string }, []>("SELECT * FROM ledger_heads ORDER BY workspace_id")
      .all();
  }

  #originOf(workspace: number): string {
    const [origin = ""] = this.#notes(workspace)[0]?.note.split("\n") ?? [];
    return origin === "" ? (this.head(workspace).split("\n")[0] ?? "") : origin;
  }

  #keys(): Uint8Array {
    const stored = this.database
      .query<{ public_key: Uint8Array }, []>("SELECT public_key FROM ledger_keys ORDER BY id")
      .all();
    return keysDigest(
      sha256,
      stored.map(({ public_key }) => public_key),
    );
  }

  head(workspace = 1): string {
    const row = this.database
      .query<{ note: string }, [number]>("SELECT note FROM ledger_heads WHERE workspace_id = ?")
      .get(workspace);
    return row?.note ?? "";
  }

  setHead(note: string, workspace = 1): void {
    this.run("UPDATE ledger_heads SET note = ? WHERE workspace_id = ?", note, workspace);
  }

  /** The note of the stored checkpoint of this size. */
  checkpoint(size: number, workspace = 1): string {
    return this.#notes(workspace).find((each) => each.size === size)?.note ?? "";
  }

  /** A checkpoint of a workspace's entries, with their root or another one. */
  noteBy(signer: Sign, size: number, root = this.#rootOf(1, size), workspace = 1): string {
    const [origin = ""] = this.#notes(workspace)[0]?.note.split("\n") ?? [];
    const text = checkpointText({ origin, size, root });
    return formatNote({ text, signatures: [signer(origin, text)] });
  }

  /** Flips a bit of one hash in a tile. */
  editTile(level: number, tile: number, place: number): void {
    const where: [number, number, number] = [1, level, tile];
    const row = this.database
      .query<{ hashes: Uint8Array }, [number, number, number]>(
        "SELECT hashes FROM ledger_tiles WHERE workspace_id = ? AND level = ? AND tile = ?",
      )
      .get(...where);
    const hashes = Uint8Array.from(row?.hashes ?? []);
    hashes[place * 32 + 5] = (hashes[place * 32 + 5] ?? 0) ^ 1;
    this.run(
      "UPDATE ledger_tiles SET hashes = ? WHERE workspace_id = ? AND level = ? AND tile = ?",
      hashes,
      ...where,
    );
  }

  #notes(workspace: number): { readonly size: number; readonly note: string }[] {
    return this.database
      .query<{ size: number; note: string }, [number]>(
        "SELECT size, note FROM ledger_checkpoints WHERE workspace_id = ? ORDER BY size",
      )
      .all(workspace);
  }

  #rootOf(workspace: number, size: number): Uint8Array {
    return new Oracle(this.rows(workspace).map(({ leaf }) => leaf)).root(size);
  }

  /** Rebuilds the tree's tiles and the index from the present entries, as the program itself would. */
  async rebuild(workspace = 1): Promise<void> {
    this.run("DELETE FROM ledger_tiles WHERE workspace_id = ?", workspace);
    this.run("DELETE FROM ledger_index WHERE workspace_id = ?", workspace);
    const db = openSqlite(this.copy.path);
    await completeLedger(db, workspace);
    await db.close();
  }

  /** The directory's own key, stored in it. */
  stolenKey(): Sign {
    const key = createPrivateKey(readFileSync(join(this.copy.dataDir, "ledger.key")));
    const publicKey = publicBytes(key);
    return (origin, text) => ({
      name: origin,
      keyId: keyIdOf(sha256, origin, publicKey),
      signature: sign(null, Buffer.from(text), key),
    });
  }

  /** Turns the key file into that of a version that signed no heads. */
  unmarkKey(): void {
    const file = join(this.copy.dataDir, "ledger.key");
    const pem = readFileSync(file, "utf8").replace(/^(?:(?!-----BEGIN).*\n)*/, "");
    writeFileSync(file, pem, { mode: 0o600 });
  }

  /** Replaces bytes wherever they occur in the file, like a hex editor; nothing else changes. */
  edit(from: string | Uint8Array, to: string | Uint8Array): void {
    this.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    const [before, after] = [Buffer.from(from), Buffer.from(to)];
    if (before.length !== after.length) throw new Error("a hex edit keeps the length");
    const file = readFileSync(this.copy.path);
    let found = 0;
    for (let at = file.indexOf(before); at >= 0; at = file.indexOf(before, at + 1)) {
      after.copy(file, at);
      found += 1;
    }
    if (found === 0) throw new Error("these bytes do not stand in the file");
    writeFileSync(this.copy.path, file);
  }
}

/** Signs with another key, under whatever name is requested. */
export function signAs(signer: TestSigner): Sign {
  return (origin, text) => ({
    ...signer.sign(text),
    name: origin,
    keyId: keyIdOf(sha256, origin, signer.publicKey),
  });
}

function publicBytes(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32);
}
