import type { ReportEntryFields } from "../format/entry.ts";

/** Maximum number of requests of unfinished tasks that are followed. Further ones are counted as `unfollowed`. */
const FOLLOWED = 20_000;

const PRESENTED = "approval_required";

/** The outcome of a call presented to people. */
type ApprovalAnswer = "approved" | "denied" | "expired";
const ANSWERS: Readonly<Record<string, ApprovalAnswer>> = {
  approve: "approved",
  change: "approved",
  deny: "denied",
  expire: "expired",
};

/**
 * Outcomes of the calls presented to people: `presented` is the sum of all the others except `earlier`. If two people
 * have to approve, the last decision on a call counts.
 */
export class Requests {
  presented = 0;
  /** Undecided when their task ended: it was cancelled, its agent was stopped, or it failed. */
  withdrawn = 0;
  /** Not followed, because too many were waiting at once. */
  unfollowed = 0;
  /**
   * Decisions on calls that were presented before the first of these entries, or by entries that are not included.
   */
  earlier = 0;
  readonly #counts: Record<ApprovalAnswer, number> = { approved: 0, denied: 0, expired: 0 };
  /** By task, then by the seq of the entry that presented the call; null until it is decided. */
  readonly #open = new Map<string, Map<number, ApprovalAnswer | null>>();
  #followed = 0;

  add(entry: ReportEntryFields): void {
    const { action, phase, outcome, oversight, task, seq } = entry;
    if (outcome === "pending" && entry.code === PRESENTED) this.#present(task ?? "", seq);
    else if (action === "task.dispatch" && phase === "outcome") this.#end(task ?? "");
    const answer = ANSWERS[oversight?.decision ?? ""];
    const target = oversight?.target_seq;
    const counts = outcome === "succeeded" || answer === "expired";
    if (answer !== undefined && target !== undefined && counts) this.#answer(task ?? "", target, answer);
  }

  get approved(): number {
    return this.#count("approved");
  }

  get denied(): number {
    return this.#count("denied");
  }

  get expired(): number {
    return this.#count("expired");
  }

  /** Calls that were undecided, and whose task had not ended, at the last entry. */
  get waiting(): number {
    return this.#openWith(null);
  }

  #present(task: string, seq: number): void {
    this.presented += 1;
    if (this.#followed >= FOLLOWED) {
      this.unfollowed += 1;
      return;
    }
    const requests = this.#open.get(task) ?? new Map<number, ApprovalAnswer | null>();
    this.#open.set(task, requests.set(seq, null));
    this.#followed += 1;
  }

  #answer(task: string, target: number, answer: ApprovalAnswer): void {
    const requests = this.#open.get(task);
    if (requests?.has(target)) requests.set(target, answer);
    else this.earlier += 1;
  }

  #end(task: string): void {
    const requests = this.#open.get(task);
    if (!requests) return;
    for (const answer of requests.values()) {
      if (answer === null) this.withdrawn += 1;
      else this.#counts[answer] += 1;
    }
    this.#followed -= requests.size;
    this.#open.delete(task);
  }

  #count(answer: ApprovalAnswer): number {
    return this.#counts[answer] + this.#openWith(answer);
  }

  #openWith(answer: ApprovalAnswer | null): number {
    let count = 0;
    for (const requests of this.#open.values())
      for (const given of requests.values()) if (given === answer) count += 1;
    return count;
  }
}
