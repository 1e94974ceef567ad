import { isConsistent, rootOfInclusion } from "../../../src/ledger/proof/check.ts";
import { type Checkpoint, parseSignedCheckpoint } from "../../../src/ledger/proof/checkpoint.ts";
import { isEqual } from "../../../src/ledger/proof/hash.ts";
import {
  NoteError,
  parseNote,
  parseVerifierKey,
  signersOf,
  type VerifierKey,
} from "../../../src/ledger/proof/note.ts";
import { sha256, TREE } from "../../../src/ledger/tree-hash.ts";
import { verifyEd25519 } from "../proof/signing.ts";
import type { Answer, Consistency, Inclusion, Question, Verdict } from "./program.ts";

type Check = NonNullable<Question["check"]>;

/** This program's own answers to what Go is asked to check. */
export async function ourVerdicts(check: Check): Promise<Answer["check"]> {
  const keys = check.verifierKeys.map((key) => parseVerifierKey(sha256, key));
  const each = async <Thing>(
    things: readonly Thing[] | undefined,
    verdict: (thing: Thing) => Promise<Verdict>,
  ) => (things ? Promise.all(things.map(verdict)) : null);
  return {
    notes: await each(check.notes, (note) => verdictOfNote(note, keys)),
    inclusions: await each(check.inclusions, (inclusion) => verdictOfInclusion(inclusion, keys)),
    consistencies: await each(check.consistencies, (consistency) => verdictOfConsistency(consistency, keys)),
  };
}

async function verdictOfNote(text: string, keys: readonly VerifierKey[]): Promise<Verdict> {
  try {
    return (await signersOf(parseNote(text), keys, verifyEd25519)).length > 0 ? "good" : "unsigned";
  } catch (error) {
    if (error instanceof NoteError) return "refused";
    throw error;
  }
}

async function verdictOfInclusion(
  { entry, index, checkpoint, proof }: Inclusion,
  keys: readonly VerifierKey[],
): Promise<Verdict> {
  const opened = await open(checkpoint, keys);
  if (typeof opened === "string") return opened;
  const leaf = TREE.leaf(Buffer.from(entry, "base64"));
  const root = rootOfInclusion(TREE, leaf, index, opened.size, hashes(proof));
  return root !== null && isEqual(root, opened.root) ? "good" : "refused";
}

async function verdictOfConsistency(
  { older, newer, proof }: Consistency,
  keys: readonly VerifierKey[],
): Promise<Verdict> {
  const from = await open(older, keys);
  if (typeof from === "string") return from;
  const to = await open(newer, keys);
  if (typeof to === "string") return to;
  return isConsistent(TREE, from, to, hashes(proof)) ? "good" : "refused";
}

async function open(text: string, keys: readonly VerifierKey[]): Promise<Checkpoint | Verdict> {
  const verdict = await verdictOfNote(text, keys);
  return verdict === "good" ? parseSignedCheckpoint(text).checkpoint : verdict;
}

function hashes(proof: readonly string[]): Uint8Array[] {
  return proof.map((hash) => Uint8Array.from(Buffer.from(hash, "base64")));
}
