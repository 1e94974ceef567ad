import { parseJson } from "../../../base/json-limits.ts";
import { rootOfInclusion } from "../../../ledger/proof/check.ts";
import { isEqual, type TreeHash, treeHash } from "../../../ledger/proof/hash.ts";
import { fromBase64 } from "../../../ledger/proof/note.ts";
import { inclusionRanges, type LeafRange } from "../../../ledger/proof/ranges.ts";
import { browserTools } from "../../../ledger/verify/bundle/page/tools.ts";
import { hashesOf } from "../../../ledger/verify/bundle/trust.ts";
import type { AnswerOf } from "../../api/client.ts";
import { judgeCheckpoint, type KeyAnswer, type SignatureVerdict } from "./judge-head.ts";

export type EntryAnswer = AnswerOf<"GET /v1/ledger/:seq">;
export type ProofAnswer = AnswerOf<"GET /v1/ledger/:seq/proof">;

/** A node of the Merkle tree, and the entries below it, counted from 0. */
export interface ProofNode {
  readonly hash: Uint8Array;
  readonly range: LeafRange;
}

/** One step of the path: the hash computed here, the sibling from the server, and the hash of both. */
export interface ProofStep {
  readonly own: ProofNode;
  readonly sibling: ProofNode;
  /** The side of the sibling. */
  readonly side: "left" | "right";
}

export interface EntryCheck {
  readonly text: string;
  /** The leaf hash, computed from the bytes. */
  readonly leaf: Uint8Array;
  /** What does not match, one sentence each; empty if everything does. */
  readonly wrong: readonly string[];
  readonly steps: readonly ProofStep[];
  /** The root that the path leads to; null if the proof has no valid path. */
  readonly root: ProofNode | null;
  readonly isRootSigned: boolean;
  readonly signed: SignatureVerdict;
}

/**
 * Recomputes what the server states about an entry: its leaf hash, every node of the path, and whether the path ends
 * at the signed root. Never rejects, whatever the server answers.
 */
export async function checkEntry(
  entry: EntryAnswer,
  proof: ProofAnswer,
  keys: KeyAnswer,
  seq: number,
): Promise<EntryCheck> {
  const hash = treeHash(browserTools.sha256);
  const signed = await judgeCheckpoint(proof.checkpoint, keys);
  const bytes = fromBase64(entry.bytes);
  const leaf = hash.leaf(bytes ?? new Uint8Array(0));
  const text = bytes ? new TextDecoder().decode(bytes) : "";
  const wrong = [
    ...(bytes ? wrongFields(entry, text, seq) : ["The entry’s bytes are not valid base64."]),
    ...wrongLeaf("entry", entry.leaf, leaf),
    ...wrongLeaf("proof", proof.leaf, leaf),
  ];
  const { checkpoint } = signed;
  const size = checkpoint?.size ?? proof.size;
  if (checkpoint && checkpoint.size !== proof.size) {
    wrong.push(`The proof is for ${proof.size} entries, but its checkpoint is for ${checkpoint.size}.`);
  }
  const siblings = hashesOf(proof.inclusion);
  const climbed = climb(hash, leaf, seq - 1, size, siblings);
  if (climbed === null) {
    wrong.push("The proof has too many or too few hashes for its position in the tree, or an invalid one.");
  }
  // The bundle verifier's code decides; the steps above only illustrate it.
  const proven = rootOfInclusion(hash, leaf, seq - 1, size, siblings);
  const isRootSigned = checkpoint !== null && proven !== null && isEqual(proven, checkpoint.root);
  return {
    text,
    leaf,
    wrong,
    steps: climbed?.steps ?? [],
    root: climbed?.root ?? null,
    isRootSigned,
    signed,
  };
}

/** Whether everything matches. */
export function doesHold({ wrong, isRootSigned, signed }: EntryCheck): boolean {
  return wrong.length === 0 && isRootSigned && signed.verdict === "good";
}

/** Each step from the leaf to the root's child, and the root; null if the proof does not fit this entry's place. */
function climb(
  hash: TreeHash,
  leaf: Uint8Array,
  index: number,
  size: number,
  siblings: readonly Uint8Array[],
): { readonly steps: readonly ProofStep[]; readonly root: ProofNode } | null {
  if (!Number.isSafeInteger(size) || index < 0 || index >= size) return null;
  const ranges = inclusionRanges(index, size);
  if (ranges.length !== siblings.length || siblings.some(({ length }) => length !== leaf.length)) return null;
  const steps: ProofStep[] = [];
  let own: ProofNode = { hash: leaf, range: { start: index, end: index + 1 } };
  for (const [level, range] of ranges.entries()) {
    const sibling = { hash: siblings[level] ?? leaf, range };
    const side = range.end <= own.range.start ? "left" : "right";
    steps.push({ own, sibling, side });
    const [left, right] = side === "left" ? [sibling, own] : [own, sibling];
    own = {
      hash: hash.node(left.hash, right.hash),
      range: { start: left.range.start, end: right.range.end },
    };
  }
  return { steps, root: own };
}

function wrongLeaf(where: string, said: string, leaf: Uint8Array): string[] {
  return said === leaf.toHex()
    ? []
    : [`The bytes do not match the leaf hash in the ${where}: one of the two was changed.`];
}

/** Fields of the answer that differ from the entry's bytes. */
function wrongFields({ bytes: _, leaf: __, ...fields }: EntryAnswer, text: string, seq: number): string[] {
  const inside = parseObject(text);
  if (inside === null) return ["The entry’s bytes are not a valid entry."];
  const wrong = Object.entries(fields).flatMap(([field, value]) =>
    sorted(inside[field] ?? null) === sorted(value)
      ? []
      : [`The field ${field} differs from the value that was hashed.`],
  );
  return inside.seq === seq ? wrong : [...wrong, `The bytes do not belong to entry ${seq}.`];
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value = parseJson(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : null;
  } catch {
    return null;
  }
}

/** JSON with sorted keys, so that equal content gives equal text. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
