import { isConsistent } from "../../../ledger/proof/check.ts";
import { type Checkpoint, parseSignedCheckpoint } from "../../../ledger/proof/checkpoint.ts";
import { treeHash } from "../../../ledger/proof/hash.ts";
import { NoteError, parseVerifierKey, signersOf, type VerifierKey } from "../../../ledger/proof/note.ts";
import { browserTools, missingHere } from "../../../ledger/verify/bundle/page/tools.ts";
import { hashesOf } from "../../../ledger/verify/bundle/trust.ts";
import type { AnswerOf } from "../../api/client.ts";
import type { RememberedHead } from "./remembered-head.ts";

export type KeyAnswer = AnswerOf<"GET /v1/ledger/key">;

/**
 * Whether a checkpoint is signed by the ledger's key, with the reason if not. `undecided`: this browser cannot check
 * it.
 */
export type SignatureVerdict =
  | { readonly verdict: "good"; readonly checkpoint: Checkpoint; readonly key: VerifierKey }
  | {
      readonly verdict: "bad" | "undecided";
      readonly checkpoint: Checkpoint | null;
      readonly reason: string;
    };

/** Checks a checkpoint's signature with the keys that the server names. */
export async function judgeCheckpoint(
  text: string,
  { vkey, former_vkeys = [] }: KeyAnswer,
): Promise<SignatureVerdict> {
  const missing = missingHere();
  if (missing !== null) return { verdict: "undecided", checkpoint: null, reason: missing };
  let checkpoint: Checkpoint | null = null;
  try {
    const signed = parseSignedCheckpoint(text);
    checkpoint = signed.checkpoint;
    const keys = [vkey, ...former_vkeys].map((key) => parseVerifierKey(browserTools.sha256, key));
    const [key] = await signersOf(signed.note, keys, browserTools.verifySignature);
    if (!key) return { verdict: "bad", checkpoint, reason: "None of the ledger's keys has signed it." };
    if (key.name !== checkpoint.origin) {
      return {
        verdict: "bad",
        checkpoint,
        reason: `It is signed by ${key.name}, the key of a different ledger.`,
      };
    }
    return { verdict: "good", checkpoint, key };
  } catch (error) {
    if (error instanceof NoteError)
      return { verdict: "bad", checkpoint, reason: `${sentence(error.message)}.` };
    return {
      verdict: "undecided",
      checkpoint,
      reason: error instanceof Error ? error.message : String(error),
    };
  }
}

/** A ledger compared with what this browser has seen of it. */
export type GrowthVerdict =
  /** Not seen before. */
  | "first"
  /** It begins with the entries seen before. */
  | "grown"
  /** It does not: entries were changed, added or removed. */
  | "rewritten"
  /** It has a different name. */
  | "another";

export interface HeadJudgement {
  readonly signed: SignatureVerdict;
  readonly growth: GrowthVerdict;
  /** Whether the key is the one seen before. */
  readonly isSameKey: boolean;
}

/** Judges the ledger's head by the head seen before, and by the consistency proof between the two. */
export async function judgeHead(
  { consistency, checkpoint: text }: AnswerOf<"GET /v1/ledger/consistency">,
  keys: KeyAnswer,
  seen: RememberedHead | null,
): Promise<HeadJudgement> {
  const signed = await judgeCheckpoint(text, keys);
  const before = seen && seenCheckpoint(seen);
  const isSameKey = seen === null || seen.vkey === keys.vkey;
  if (before === null || signed.checkpoint === null) return { signed, growth: "first", isSameKey };
  if (before.origin !== signed.checkpoint.origin) return { signed, growth: "another", isSameKey };
  const hash = treeHash(browserTools.sha256);
  const isGrown = isConsistent(hash, before, signed.checkpoint, hashesOf(consistency));
  return { signed, growth: isGrown ? "grown" : "rewritten", isSameKey };
}

/** Null if the stored checkpoint is malformed. */
export function seenCheckpoint({ note }: RememberedHead): Checkpoint | null {
  try {
    return parseSignedCheckpoint(note).checkpoint;
  } catch {
    return null;
  }
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
