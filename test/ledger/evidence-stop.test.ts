/** A search that matches nothing can be stopped at each block. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { entryTest } from "../../src/ledger/reading/entry-filter.ts";
import { EvidenceReader } from "../../src/ledger/reading/evidence.ts";
import { evidencePages, leafPages } from "../../src/ledger/reading/evidence-pages.ts";
import { draft, type LedgerBench, openLedger } from "./support.ts";

const BLOCKS = 12;
const STOP_AT = 4;
let bench: LedgerBench;

beforeAll(async () => {
  bench = await openLedger();
  await Promise.all(Array.from({ length: BLOCKS * 256 }, () => bench.ledger.record(1, draft())));
});
afterAll(() => bench.close());

/** A reader that fails from its `STOP_AT`th block on. */
async function stopped(): Promise<{ readonly reader: EvidenceReader; asked(): number }> {
  let asked = 0;
  const reader = await EvidenceReader.open(bench.db, 1, await bench.heads.committed(1), () => {
    asked += 1;
    if (asked >= STOP_AT) throw new Error("the client has left");
    return undefined;
  });
  return { reader, asked: () => asked };
}

const none = entryTest({ action: "none.such" });
const all = { first: 1, last: BLOCKS * 256 } as const;

test.each([
  [
    "entries, oldest first",
    (reader: EvidenceReader) => evidencePages(reader, { ...all, order: "asc" }, none),
  ],
  [
    "entries, newest first",
    (reader: EvidenceReader) => evidencePages(reader, { ...all, order: "desc" }, none),
  ],
  ["leaves", (reader: EvidenceReader) => leafPages(reader, all)],
])("a search stops at the block for which it is refused: %s", async (_, search) => {
  const { reader, asked } = await stopped();
  let pages = 0;
  let message = "";
  try {
    for await (const _page of search(reader)) pages += 1;
  } catch (error) {
    message = error instanceof Error ? error.message : String(error);
  }
  expect([message, pages, asked()]).toEqual(["the client has left", STOP_AT - 1, STOP_AT]);
});
