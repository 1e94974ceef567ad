import { Problem } from "../../base/errors.ts";
import { type FairPlace, FairPlaces } from "../../limits/fair-places.ts";

/** Each holds a socket and at most two blocks (64 KiB). */
const STREAMS_PER_WORKSPACE = 2_000;
const STREAMS_PER_NODE = 10_000;
const RETRY_SECONDS = 5;

/** A place for one open stream. */
export type StreamPlace = FairPlace<number>;

/** The open streams, by workspace. They do not count against the request limit, so they have their own limit. */
export class OpenStreams extends FairPlaces<number> {
  constructor(perWorkspace = STREAMS_PER_WORKSPACE, perNode = STREAMS_PER_NODE) {
    super({
      perHolder: perWorkspace,
      total: perNode,
      refused: (isOwn) =>
        new Problem(
          "rate_limited",
          isOwn
            ? `The workspace already has ${perWorkspace} open streams. Close one, or retry shortly.`
            : "The server has too many open streams. Retry shortly.",
          { headers: { "Retry-After": String(RETRY_SECONDS) } },
        ),
    });
  }
}
