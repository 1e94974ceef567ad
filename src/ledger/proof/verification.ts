import type { SignedCheckpoint } from "./checkpoint.ts";
import type { Sha256 } from "./hash.ts";
import type { VerifierKey, VerifySignature } from "./note.ts";

/**
 * `holds`: nothing contradicts anything, and a signed checkpoint vouches for it. `tampered`: something was changed,
 * added or taken away. `undecided`: something is missing that it takes to say.
 */
export type Verdict = "holds" | "tampered" | "undecided";

/** What speaks against a ledger, or keeps it from being decided. */
export interface Finding {
  readonly verdict: Exclude<Verdict, "holds">;
  /** For programs, such as `entry_changed`. */
  readonly code: string;
  /** For people: which entry or file, what is wrong with it, what it means. One sentence or two. */
  readonly message: string;
  readonly workspace?: string;
  /** The entry that it is about, where there is one. */
  readonly seq?: number;
}

/** The worst of what was found: a ledger that was tampered with is so whatever else is missing. */
export function verdictOf(findings: readonly Finding[]): Verdict {
  if (findings.some(({ verdict }) => verdict === "tampered")) return "tampered";
  return findings.length > 0 ? "undecided" : "holds";
}

/** What an auditor brings along, who believes nothing that lies beside the entries. */
export interface Trust {
  /** None: the keys that lie inside are believed, and the result says so. */
  readonly keys: readonly VerifierKey[];
  /** Checkpoints that were kept elsewhere, of any workspace. */
  readonly checkpoints: readonly SignedCheckpoint[];
}

/** What differs between this program and an auditor's browser. */
export interface VerifyTools {
  readonly sha256: Sha256;
  readonly verifySignature: VerifySignature;
}

/** What was checked, for people and for `--json`: how many entries, the root, which keys, what no checkpoint covers. */
export interface Fact {
  readonly label: string;
  readonly value: string;
}

export interface Verification {
  readonly verdict: Verdict;
  readonly findings: readonly Finding[];
  readonly facts: readonly Fact[];
}
