import type { VerificationFact, VerificationFinding } from "../proof/verification.ts";

/**
 * Maximum number of findings of one code that are listed, so that one wrong entry, or a million, cannot hide other
 * findings.
 */
const MOST_OF_A_KIND = 20;

/** Number of findings of one code after which reading possibly hostile input stops. */
const FLOOD = 1_000;

interface FindingGroup {
  readonly shown: VerificationFinding[];
  more: number;
}

/** Findings that explain others are listed first. */
const CAUSES: readonly string[] = ["entries_rewritten", "tail_missing", "tail_unsigned"];

/** Collects findings about one workspace's ledger, or about the database as a whole. */
export class VerificationReport {
  readonly #workspace: string | undefined;
  readonly #kinds = new Map<string, FindingGroup>();
  readonly #facts: VerificationFact[] = [];
  #isFlooded = false;

  constructor(workspace?: string) {
    this.#workspace = workspace;
  }

  tampered(code: string, message: string, seq?: number): void {
    this.#add("tampered", code, message, seq);
  }

  undecided(code: string, message: string, seq?: number): void {
    this.#add("undecided", code, message, seq);
  }

  /**
   * Withdraws findings with these codes about entries from `first` on, because they only follow from another finding.
   */
  withdraw(codes: readonly string[], first: number): void {
    for (const code of codes) {
      const kind = this.#kinds.get(code);
      if (!kind) continue;
      const left = kind.shown.filter(({ seq }) => seq !== undefined && seq < first);
      // Findings that were only counted came later, so they concern later entries.
      if (left.length < kind.shown.length) kind.more = 0;
      kind.shown.splice(0, Number.POSITIVE_INFINITY, ...left);
    }
  }

  /** Whether there is a finding whose code matches. */
  has(isMeant: (code: string) => boolean): boolean {
    return [...this.#kinds].some(([code, { shown }]) => shown.length > 0 && isMeant(code));
  }

  fact(label: string, value: string): void {
    this.#facts.push({ label, value });
  }

  /** Whether there are so many findings of one code that more would add nothing. */
  get isFlooded(): boolean {
    return this.#isFlooded;
  }

  get facts(): readonly VerificationFact[] {
    return this.#facts;
  }

  /** Tampering first. Findings of one code stay together, in the order in which the codes were first found. */
  get findings(): readonly VerificationFinding[] {
    const kinds = [...this.#kinds].toSorted(([a], [b]) => rank(a) - rank(b));
    const all = kinds.flatMap(([, { shown, more }]) => {
      const [first] = shown;
      if (!first || more === 0) return shown;
      const { seq: _, ...kind } = first;
      return [...shown, { ...kind, message: `… and ${counted(more)} more of this kind.` }];
    });
    return [
      ...all.filter(({ verdict }) => verdict === "tampered"),
      ...all.filter(({ verdict }) => verdict !== "tampered"),
    ];
  }

  #add(
    verdict: VerificationFinding["verdict"],
    code: string,
    message: string,
    seq: number | undefined,
  ): void {
    const kind = this.#kinds.get(code) ?? { shown: [], more: 0 };
    this.#kinds.set(code, kind);
    if (kind.shown.length >= MOST_OF_A_KIND) {
      kind.more += 1;
      if (kind.more + kind.shown.length >= FLOOD) this.#isFlooded = true;
      return;
    }
    kind.shown.push({
      verdict,
      code,
      message,
      ...(this.#workspace === undefined ? {} : { workspace: this.#workspace }),
      ...(seq === undefined ? {} : { seq }),
    });
  }
}

function rank(code: string): number {
  const place = CAUSES.indexOf(code);
  return place < 0 ? CAUSES.length : place;
}

/** A number for people, such as 1,000,000. */
export function counted(count: number): string {
  return count.toLocaleString("en-US");
}

/** `entry 7` or `entries 7 to 9`. */
export function span(first: number, last: number): string {
  return first === last ? `entry ${first}` : `entries ${first} to ${last}`;
}
