import type { Caller } from "../access/caller.ts";
import type { Via } from "../base/via.ts";
import type { CallOrigin } from "../gate/gate.ts";
import type { RequestLimit } from "../gate/requests.ts";

/** One HTTP request, as seen by the handlers of the calls in it. Its caller is already authenticated. */
export class RequestVisit {
  #origin: CallOrigin;
  #reads: Promise<void> = Promise.resolve();
  readonly caller: Caller;
  /** Null before the request is counted, and if it is not counted. */
  limit: RequestLimit | null;

  constructor(origin: CallOrigin, caller: Caller, limit: RequestLimit | null) {
    this.#origin = origin;
    this.caller = caller;
    this.limit = limit;
  }

  get origin(): CallOrigin {
    return this.#origin;
  }

  /**
   * Runs the reads of a batch one after another. Each may have a whole document in memory, and one connection could
   * otherwise demand a hundred at once.
   */
  inTurn<Value>(read: () => Promise<Value>): Promise<Value> {
    const result = this.#reads.then(read);
    // The result reports its failure.
    this.#reads = result.then(
      () => {},
      () => {},
    );
    return result;
  }

  /** Adds the Gatehouse instances named in the request's messages to those named in its header. */
  addHops(named: Via): void {
    const { via = [] } = this.#origin;
    const added = named.filter((instance) => !via.includes(instance));
    if (added.length > 0) this.#origin = { ...this.#origin, via: [...via, ...added] };
  }
}
