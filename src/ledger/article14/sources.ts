import type { Sql } from "../../store/db.ts";
import type { StoredEntry } from "../query.ts";

const ENCODER = new TextEncoder();

/** Text in pieces to bytes in chunks that are worth their handling. */
const CHUNK_CHARACTERS = 32_768;

export async function* encoded(
  pieces: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<Uint8Array, void> {
  let waiting = "";
  for await (const piece of pieces) {
    waiting += piece;
    if (waiting.length < CHUNK_CHARACTERS) continue;
    yield ENCODER.encode(waiting);
    waiting = "";
  }
  if (waiting !== "") yield ENCODER.encode(waiting);
}

/** Leaves that one look reads: 16 tiles' worth. */
const LEAVES_AT_ONCE = 4_096;

/** `<seq> <hex>`, a line for each entry of a span, whatever a filter says. */
export async function* leafLines(
  db: Pick<Sql, "all">,
  workspaceId: number,
  { first, last }: { readonly first: number; readonly last: number },
): AsyncGenerator<string, void> {
  for (let from = first; from <= last; ) {
    const to = Math.min(last, from + LEAVES_AT_ONCE - 1);
    const rows = await db.all<Pick<StoredEntry, "seq" | "leaf">>(
      "SELECT seq, leaf FROM ledger WHERE workspace_id = $1 AND seq >= $2 AND seq <= $3 ORDER BY seq",
      [workspaceId, from, to],
    );
    yield rows.map(({ seq, leaf }) => `${seq} ${leaf.toHex()}\n`).join("");
    from = to + 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Entries of two searches in the ledger's order. */
export async function* inOrder(
  left: AsyncIterable<readonly StoredEntry[]>,
  right: AsyncIterable<readonly StoredEntry[]>,
): AsyncGenerator<StoredEntry, void> {
  const [a, b] = [one(left), one(right)];
  try {
    let [x, y] = [await a.next(), await b.next()];
    while (!x.done || !y.done) {
      if (!x.done && (y.done || x.value.seq < y.value.seq)) {
        yield x.value;
        x = await a.next();
      } else if (!y.done) {
        yield y.value;
        y = await b.next();
      }
    }
  } finally {
    await Promise.all([a.return(), b.return()]);
  }
}

async function* one(pages: AsyncIterable<readonly StoredEntry[]>): AsyncGenerator<StoredEntry, void> {
  for await (const page of pages) yield* page;
}
