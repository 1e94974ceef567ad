import type { Caller } from "../access/caller.ts";
import type { Via } from "../base/via.ts";
import type { Origin } from "../gate/gate.ts";
import type { RequestLimit } from "../gate/requests.ts";

/** One HTTP request, as the handlers of the calls inside of it see it: who asks was settled at the door. */
export class Visit {
  #origin: Origin;
  readonly caller: Caller;
  /** Null before the request was counted, and for what is not counted. */
  limit: RequestLimit | null;

  constructor(origin: Origin, caller: Caller, limit: RequestLimit | null) {
    this.#origin = origin;
    this.caller = caller;
    this.limit = limit;
  }

  get origin(): Origin {
    return this.#origin;
  }

  /** Adds the Gatehouses that the request's messages name to those that its header names. */
  addHops(named: Via): void {
    const { via = [] } = this.#origin;
    const added = named.filter((instance) => !via.includes(instance));
    if (added.length > 0) this.#origin = { ...this.#origin, via: [...via, ...added] };
  }
}
