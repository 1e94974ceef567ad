import type { Caller } from "../../access/caller.ts";
import type { Clock } from "../../base/clock.ts";
import type { EventReader } from "../../tasks/events/hub.ts";
import { eventStream } from "../answer/sse.ts";
import type { StreamReply } from "../endpoint.ts";
import type { OpenCallers } from "./open-callers.ts";
import type { OpenStreams, StreamPlace } from "./open-streams.ts";
import type { StreamMemory } from "./stream-memory.ts";

export interface EventReplyParts {
  /** Shared by all streams that the gateway opens. */
  readonly streams: OpenStreams;
  /** Ends streams whose token or session is no longer valid. */
  readonly callers: OpenCallers;
  readonly clock: Clock;
}

/** The resources of an open stream. */
export interface OpenedStream {
  readonly place: StreamPlace;
  readonly memory?: StreamMemory;
}

/**
 * Sends events to a client until the events end or the client loses its rights. Takes over the place and the reader.
 */
export function eventReply(
  { callers, clock }: EventReplyParts,
  { caller, request }: { readonly caller: Caller; readonly request: Request },
  { place, memory }: OpenedStream,
  reader: EventReader,
  headers: Readonly<Record<string, string>> = {},
): StreamReply {
  const ended = memory?.ended ?? place.release;
  memory?.onLost(() => reader.close());
  return {
    stream: (own, expire) => {
      const guarded = callers.guard(reader, caller);
      place.endsBy(guarded.close);
      const all = { ...own, ...headers };
      return eventStream(guarded, request.signal, all, clock, { expire, ended });
    },
    abandon() {
      reader.close();
      ended();
    },
  };
}
