import type { EntryFields } from "../format/entry.ts";

/** Requests of tasks that have not ended yet: what comes past those is counted as `unfollowed`. */
const FOLLOWED = 20_000;

const PRESENTED = "approval_required";

/** What became of a call that was put before people. */
type Answer = "approved" | "denied" | "expired";
const ANSWERS: Readonly<Record<string, Answer>> = {
  approve: "approved",
  change: "approved",
  deny: "denied",
  expire: "expired",
};

/**
 * What became of the calls that were put before people: `presented` is the sum of all the others but `earlier`. Where two
 * people have to approve, the last word on a call counts.
 */
export class Requests {
  presented = 0;
  /** Those that no word was said on before their task ended: it was cancelled, its agent was stopped, or it failed. */
  withdrawn = 0;
  /** Too many waited at once for each to be followed. */
  unfollowed = 0;
  /** Words on calls that were presented before the first of these entries, or by entries that are not among them. */
  earlier = 0;
  readonly #counts: Record<Answer, number> = { approved: 0, denied: 0, expired: 0 };
  /** By task, each by the entry that presented it: null until somebody says a word on it. */
  readonly #open = new Map<string, Map<number, Answer | null>>();
  #followed = 0;

  add(entry: EntryFields): void {
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

  /** No word on them, and no end of their task, up to the last entry. */
  get waiting(): number {
    return this.#openWith(null);
  }

  #present(task: string, seq: number): void {
    this.presented += 1;
    if (this.#followed >= FOLLOWED) {
      this.unfollowed += 1;
      return;
    }
    const requests = this.#open.get(task) ?? new Map<number, Answer | null>();
    this.#open.set(task, requests.set(seq, null));
    this.#followed += 1;
  }

  #answer(task: string, target: number, answer: Answer): void {
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

  #count(answer: Answer): number {
    return this.#counts[answer] + this.#openWith(answer);
  }

  #openWith(answer: Answer | null): number {
    let count = 0;
    for (const requests of this.#open.values())
      for (const given of requests.values()) if (given === answer) count += 1;
    return count;
  }
}
