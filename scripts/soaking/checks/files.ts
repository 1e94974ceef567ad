import { readdirSync } from "node:fs";
import { unsettled } from "../../../test/faults/support.ts";
import { chainFaults } from "../../../test/ledger/support.ts";
import type { Evidence, Seen } from "../soak.ts";

/** Files that a server leaves after an orderly end, whatever happened before. */
const LEFT: readonly RegExp[] = [
  /^gatehouse\.(db|yaml|lock)$/,
  /^(ledger|secrets|webhook)\.key$/,
  /^admin\.token$/,
  /^vec0-[0-9a-f]+\.(so|dylib|dll)$/,
];
/** SQLite's log is emptied as it grows. */
const GREATEST_LOG = 64 * 1024 * 1024;

/** A damaged database, and entries that do not follow one another, checked with none of the program's own code. */
export function* fileFaults({ file }: Seen): Generator<string> {
  if (JSON.stringify(file.integrity) !== '[{"integrity_check":"ok"}]') yield JSON.stringify(file.integrity);
  for (const each of file.foreignKeys) yield `a reference leads nowhere: ${JSON.stringify(each)}`;
  yield* chainFaults(file.rows);
}

/** Intents that have no outcome, or two. */
export function* intentFaults({ file }: Seen): Generator<string> {
  yield* unsettled(file.entries);
}

/** What kills have left behind on the disk. */
export function* growthFaults({ sizes, server, greatestLog }: Evidence): Generator<string> {
  for (const [name, bytes] of sizes) {
    const isLog = name === "gatehouse.db-wal" || name === "gatehouse.db-shm";
    if (isLog ? bytes > 0 : !LEFT.some((known) => known.test(name)))
      yield `${name} is left, of ${bytes} bytes`;
  }
  for (const name of readdirSync(server.temporary)) yield `${name} is left among the temporary files`;
  if (greatestLog > GREATEST_LOG) yield `gatehouse.db-wal has grown to ${greatestLog} bytes`;
}

/** Documents that are neither as last acknowledged nor as requested since. */
export function* documentFaults({ world, documents }: Seen): Generator<string> {
  for (const { id, may } of world.documents) {
    const found = documents.get(id) ?? null;
    if (!may.includes(found)) yield `${id} is ${JSON.stringify(found)}, and may be ${JSON.stringify(may)}`;
  }
}
