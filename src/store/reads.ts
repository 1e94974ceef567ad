import { countRead, readTurn } from "../base/inflow.ts";
import type { SqlValue } from "./db.ts";

/** Reading and using a row takes as long as this many bytes of text: about 2 µs. */
const PER_ROW = 1024;
/** Shorter results do not count as part of a turn. */
const SHORT_BYTES = 4 * 1024;

/**
 * Waits for the turn of a read. Reading a text of megabytes takes milliseconds, and so does what follows, such as parsing it. So
 * reads take turns: once long rows have used up a turn of the event loop, further reads wait for a later one, and
 * workspaces take turns.
 *
 * @returns undefined if there is no wait
 */
export function turnOfRead(params: readonly SqlValue[] | undefined): Promise<void> | undefined {
  // The workspace is the first parameter of its queries. Other queries share a place in the order of turns.
  const first = params?.[0];
  return readTurn(typeof first === "number" ? first : 0);
}

/** Counts what a read has returned as part of this turn. */
export function countRows(rows: readonly unknown[]): void {
  let bytes = rows.length * PER_ROW;
  for (const row of rows) {
    for (const value of Object.values(row ?? {})) {
      if (typeof value === "string" || value instanceof Uint8Array) bytes += value.length;
    }
  }
  if (bytes >= SHORT_BYTES) countRead(bytes);
}
