import type { SignedCheckpoint } from "./checkpoint.ts";
import type { Sha256 } from "./hash.ts";
import type { VerifierKey, VerifySignature } from "./note.ts";

/**
 * `holds`: nothing is contradictory, and a signed checkpoint covers it. `tampered`: something was changed, added or
 * removed. `undecided`: something needed for a verdict is missing.
 */
export type Verdict = "holds" | "tampered" | "undecided";

/** Evidence against a ledger, or a reason why no verdict is possible. */
export interface VerificationFinding {
  readonly verdict: Exclude<Verdict, "holds">;
  /** Machine-readable, such as `entry_changed`. */
  readonly code: string;
  /** Human-readable: which entry or file, what is wrong with it, and what that means. One or two sentences. */
  readonly message: string;
  readonly workspace?: string;
  /** The entry concerned, if any. */
  readonly seq?: number;
}

/**
 * The worst verdict of all findings. A ledger that was tampered with stays `tampered`, even if something else is
 * missing.
 */
export function verdictOf(findings: readonly VerificationFinding[]): Verdict {
  if (findings.some(({ verdict }) => verdict === "tampered")) return "tampered";
  return findings.length > 0 ? "undecided" : "holds";
}

/** The material supplied by the auditor, who trusts nothing stored alongside the entries. */
export interface TrustAnchors {
  /** If empty, the keys stored with the ledger are trusted, and the result says so. */
  readonly keys: readonly VerifierKey[];
  /** Checkpoints kept elsewhere, of any workspace. */
  readonly checkpoints: readonly SignedCheckpoint[];
}

/** Functions that differ between this program and an auditor's browser. */
export interface VerifyTools {
  readonly sha256: Sha256;
  readonly verifySignature: VerifySignature;
}

/**
 * A fact that was checked, for people and for `--json`: the number of entries, the root, the keys, the entries that
 * no checkpoint covers.
 */
export interface VerificationFact {
  readonly label: string;
  readonly value: string;
}

export interface Verification {
  readonly verdict: Verdict;
  readonly findings: readonly VerificationFinding[];
  readonly facts: readonly VerificationFact[];
}
