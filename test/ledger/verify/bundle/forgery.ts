import {
  checkpointText,
  parseSignedCheckpoint,
  type SignedCheckpoint,
} from "../../../../src/ledger/proof/checkpoint.ts";
import { formatNote, keyIdOf } from "../../../../src/ledger/proof/note.ts";
import { inclusionRanges } from "../../../../src/ledger/proof/ranges.ts";
import { GrowingTree } from "../../../../src/ledger/proof/tree.ts";
import { sha256, TREE } from "../../../../src/ledger/tree-hash.ts";
import type { Forger, Unpacked } from "./support.ts";

/** A forger's bundle whose `key.txt` lists the ledger's own keys after the forger's. */
export function withStranger(forger: Forger, bundle: Unpacked): Unpacked {
  const genuine = bundle.text("key.txt");
  const forged = forger.takeOver(bundle);
  return forged.write("key.txt", forged.text("key.txt") + genuine).resign(forger.signBytes);
}

/** The same checkpoint, signed by a forger. */
export function signedBy(forger: Forger, { checkpoint }: SignedCheckpoint): SignedCheckpoint {
  const text = checkpointText(checkpoint);
  const { origin } = checkpoint;
  const keyId = keyIdOf(sha256, origin, forger.publicKey);
  const signature = forger.signBytes(new TextEncoder().encode(text));
  return parseSignedCheckpoint(formatNote({ text, signatures: [{ name: origin, keyId, signature }] }));
}

/**
 * Rewrites the entries of a whole ledger's bundle from `from` on with another actor. All hashes, proofs and the root
 * are consistent; only the signatures remain to be made.
 */
export function forgedEnd(bundle: Unpacked, from: number): Unpacked {
  const lines = bundle.text("entries.ndjson").split("\n").slice(0, -1);
  const leaves: Uint8Array[] = [];
  const entries = lines.map((line, index) => {
    const seq = index + 1;
    const before = leaves.at(-1);
    const other = seq === from ? line.replace(/"actor":"[^"]*"/, '"actor":"token:tok_forged"') : line;
    const chained =
      seq > from && before ? other.replace(/"prev":"[0-9a-f]{64}"/, `"prev":"${before.toHex()}"`) : other;
    leaves.push(TREE.leaf(new TextEncoder().encode(chained)));
    return chained;
  });
  const rootOf = (start: number, end: number) => {
    const tree = new GrowingTree(TREE);
    for (const leaf of leaves.slice(start, end)) tree.append(leaf);
    return tree.root();
  };
  const root = rootOf(0, leaves.length);
  const erasures = bundle
    .text("erasures.ndjson")
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const record = JSON.parse(line);
      const inclusion = inclusionRanges(record.seq - 1, leaves.length).map(({ start, end }) =>
        rootOf(start, end).toBase64(),
      );
      return `${JSON.stringify({ ...record, entry: entries[record.seq - 1], inclusion })}\n`;
    });
  const { checkpoint } = parseSignedCheckpoint(bundle.text("checkpoint.txt"));
  return bundle
    .write("entries.ndjson", entries.map((entry) => `${entry}\n`).join(""))
    .write("leaves.txt", leaves.map((leaf, index) => `${index + 1} ${leaf.toHex()}\n`).join(""))
    .write("erasures.ndjson", erasures.join(""))
    .write("checkpoint.txt", `${checkpointText({ ...checkpoint, root })}\n— none AAAAAAA=\n`)
    .manifest(({ tree }) => {
      tree.root = root.toHex();
    });
}
