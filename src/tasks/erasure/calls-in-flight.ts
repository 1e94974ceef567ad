import type { RunningCall, RunningCalls } from "../../gate/direct/running-calls.ts";
import type { LedgerHistories, TakenEntry } from "../../gate/ledger-histories.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";

export interface CallsInFlightParts {
  readonly lists: Pick<LedgerLists, "entries">;
  readonly histories: Pick<LedgerHistories, "of" | "catchUp" | "taken">;
  readonly running: Pick<RunningCalls, "requests" | "ended">;
}

/** The calls that an erasure waits for. */
export interface AwaitedCalls {
  readonly workspaceId: number;
  /** Includes all calls that began before this entry, and further attempts at their requests. */
  readonly before: number;
  /** Also includes all calls of these requests, whenever they began. May grow. */
  readonly requests: ReadonlySet<string>;
}

/** The actions of calls that clients make outside of tasks. */
const ACTIONS: ReadonlySet<string | undefined> = new Set([
  "tool.call",
  "model.call",
  "model.count",
  "response.dispatch",
]);

/**
 * The calls outside of tasks that have no outcome in the ledger yet, and the requests that may still lead to another
 * attempt. Calls of other nodes count as well, but not the pauses between their attempts. MUST be closed.
 */
export class CallsInFlight {
  readonly #running: CallsInFlightParts["running"];
  readonly #awaited: AwaitedCalls;
  readonly #ignore: readonly (() => void)[];
  /** Intents without an outcome, with their requests. */
  readonly #intents = new Map<number, string>();
  /** The requests of calls that had begun when this was opened, and may be tried again. */
  readonly #begun = new Set<string>();
  /** Requests of calls that have ended since `mark`. */
  readonly #ended = new Set<string>();
  #isMarking = false;
  #hasEnded = false;
  #isClosed = false;
  #wake = () => {};

  private constructor({ histories, running }: CallsInFlightParts, awaited: AwaitedCalls) {
    this.#running = running;
    this.#awaited = awaited;
    this.#ignore = [
      histories.taken.listen((entry) => this.#take(entry)),
      running.ended.listen((call) => this.#takeEnd(call)),
    ];
  }

  /** @throws LedgerChanged */
  static async open(parts: CallsInFlightParts, awaited: AwaitedCalls): Promise<CallsInFlight> {
    const { workspaceId } = awaited;
    await parts.histories.catchUp(workspaceId);
    const { openCalls, openResponses } = parts.histories.of(workspaceId);
    const seqs = [...openCalls, ...openResponses];
    const calls = new CallsInFlight(parts, awaited);
    try {
      for (const seq of seqs) calls.#intents.set(seq, "");
      for (const [seq, { bytes }] of await parts.lists.entries(workspaceId, seqs)) {
        const { request_id: request = "" } = parsedEntry(bytes);
        if (seq < awaited.before && request !== "") calls.#begun.add(request);
        // Skips calls that have ended in the meantime.
        if (calls.#intents.has(seq)) calls.#intents.set(seq, request);
      }
      return calls;
    } catch (error) {
      calls.close();
      throw error;
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const ignore of this.#ignore) ignore();
    this.#wake();
  }

  /** Whether an awaited call has ended since `mark`. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** How many of the awaited calls have not ended. */
  get size(): number {
    const { workspaceId, before, requests } = this.#awaited;
    const open = new Set<string | number>();
    for (const [seq, request] of this.#intents) {
      if (seq < before || this.#begun.has(request) || requests.has(request)) open.add(request || seq);
    }
    // Between two attempts, a request has no intent without an outcome.
    for (const request of this.#running.requests(workspaceId)) if (requests.has(request)) open.add(request);
    return open.size;
  }

  /** Starts collecting the requests of calls that end. */
  mark(): void {
    this.#ended.clear();
    this.#isMarking = true;
    this.#hasEnded = false;
  }

  /** The requests that have been in flight since `mark`. */
  requests(): ReadonlySet<string> {
    this.#isMarking = false;
    const { workspaceId } = this.#awaited;
    return new Set([...this.#ended, ...this.#intents.values(), ...this.#running.requests(workspaceId)]);
  }

  /** Resolves once an awaited call has ended since `mark`, or once this is closed. */
  async nextEnd(): Promise<void> {
    if (this.#hasEnded || this.#isClosed) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  #take({ workspaceId, seq, entry }: TakenEntry): void {
    const { action, phase, task, ref, requestId = "" } = entry;
    if (workspaceId !== this.#awaited.workspaceId || task !== undefined || !ACTIONS.has(action)) return;
    if (phase === "intent") this.#intents.set(seq, requestId);
    if (phase !== "outcome" || ref === undefined) return;
    this.#intents.delete(ref);
    this.#end(requestId, ref < this.#awaited.before || this.#begun.has(requestId));
  }

  #takeEnd({ workspaceId, requestId }: RunningCall): void {
    if (workspaceId === this.#awaited.workspaceId && requestId !== undefined) this.#end(requestId, false);
  }

  #end(request: string, isAwaited: boolean): void {
    if (this.#isMarking) this.#ended.add(request);
    if (!isAwaited && !this.#awaited.requests.has(request)) return;
    this.#hasEnded = true;
    this.#wake();
  }
}
