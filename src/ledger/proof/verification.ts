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
