import type { Caller } from "../access/caller.ts";
import type { Via } from "../base/via.ts";
import type { Origin } from "../gate/gate.ts";
import type { RequestLimit } from "../gate/requests.ts";

/** One HTTP request, as the handlers of the calls inside of it see it: who asks was settled at the door. */
export class Visit {
  readonly origin: Origin;
  readonly caller: Caller;
  /** Null before the request was counted, and for what is not counted. */
  limit: RequestLimit | null;

  constructor(origin: Origin, caller: Caller, limit: RequestLimit | null) {
    this.origin = origin;
    this.caller = caller;
    this.limit = limit;
  }

  /** The same request, whose messages name the Gatehouses that they have passed. */
  having(via: Via): Visit {
    return new Visit({ ...this.origin, via }, this.caller, this.limit);
  }
}
