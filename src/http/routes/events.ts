import { Elysia } from "elysia";
import type { Agents } from "../../access/agents.ts";
import type { Tokens } from "../../access/tokens.ts";
import type { Clock } from "../../base/clock.ts";
import { FEED_SCOPES } from "../../feed/events.ts";
import type { FeedHub } from "../../feed/hub.ts";
import { rightsOf } from "../../feed/rights.ts";
import type { Gate } from "../../gate/gate.ts";
import { eventStream } from "../answer/sse.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import type { OpenStreams } from "../streams/open-streams.ts";

export interface FeedRouteParts {
  readonly feed: FeedHub;
  readonly agents: Agents;
  readonly tokens: Tokens;
  readonly streams: OpenStreams;
  readonly gate: Pick<Gate, "rightsEnd">;
  readonly clock: Clock;
}

/** `FeedEvents` has the type of each event's data. */
const EVENTS = [
  "Server-sent events, each with an `id` that counts up within the connection. The first is `feed.open`: read your lists",
  "after it, and apply each event to them. Nothing is replayed: after reconnecting, and after `feed.reset`, read the lists",
  "again. Each event is the current state of one object, so only the last of several changes is sent. A token gets the",
  `events that it may read: ${Object.entries(FEED_SCOPES)
    .map(([name, scope]) => `\`${name}\` (${scope ?? "any token"})`)
    .join(", ")};`,
  "a token that acts as an agent gets only events about that agent, and about documents within its memory scope. The",
  "stream ends with its token or session.",
].join(" ");

/**
 * Changes in the workspace, for programs that display them. Every read is a ledger entry, so clients should not have
 * to poll.
 */
export function feedRoutes(endpoints: EndpointContext, parts: FeedRouteParts) {
  const { feed, streams, clock, gate } = parts;

  const read = endpoint(
    endpoints,
    {
      action: "events.read",
      scope: null,
      summary: "Stream the changes in the workspace as they happen",
      tag: "Events",
      counted: false,
      streams: EVENTS,
      status: 200,
    },
    async ({ call, request }) => {
      const { caller } = call;
      const load = async () => {
        const until = await gate.rightsEnd(caller);
        return clock.now() < until ? rightsOf(parts, caller, until) : undefined;
      };
      const place = streams.take(caller.workspaceId);
      try {
        const reader = feed.listen(caller.workspaceId, load);
        return {
          stream: (headers, expire) => {
            place.endsBy(() => reader.close());
            return eventStream(reader, request.signal, headers, clock, { expire, ended: place.release });
          },
          abandon() {
            reader.close();
            place.release();
          },
        };
      } catch (error) {
        place.release();
        throw error;
      }
    },
  );

  return new Elysia({ prefix: "/v1/events" }).get("", read.handle, read.hook);
}
