import type { EvidenceReader } from "../reading/evidence.ts";
import { leafPages } from "../reading/evidence-pages.ts";

const ENCODER = new TextEncoder();

/** Size at which pieces of text are encoded and passed on as one chunk. */
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

/** `<seq> <hex>`: one line for each entry of a span, regardless of filters. */
export async function* leafLines(
  evidence: EvidenceReader,
  span: { readonly first: number; readonly last: number },
): AsyncGenerator<string, void> {
  for await (const leaves of leafPages(evidence, span)) {
    yield leaves.map(({ seq, leaf }) => `${seq} ${leaf.toHex()}\n`).join("");
  }
}
