import { encodeNamed, piecesOf } from "../../../tasks/events/frames.ts";
import type { EventReader } from "../../../tasks/events/hub.ts";
import { isMembers, type Members } from "../../json.ts";

export interface ResponseEventsParts {
  /** The response as it was dispatched. */
  readonly created: Members;
  /** Reads the events in between, from the store or from memory. */
  readonly stored: EventReader;
  /** The response as it ended; null if it has not. @throws Problem if it can no longer be read */
  ended(): Promise<Members | null>;
  /** The highest id of the events in between. */
  lastId(): Promise<number>;
}

/** The events of a background response after the id `after`. Ids are `sequence_number` plus 1. */
export function responseEvents(
  { created, stored, ended, lastId }: ResponseEventsParts,
  after: number,
): EventReader {
  let isFirst = after < 1;
  let isOver = false;
  /** What is left of the last events. */
  let pieces: readonly Uint8Array[] = [];
  return {
    close() {
      isOver = true;
      pieces = [];
      stored.close();
    },
    async next() {
      const [piece, ...rest] = pieces;
      pieces = rest;
      if (piece) return [piece];
      if (isOver) return null;
      if (isFirst) {
        isFirst = false;
        const data = { type: "response.created", sequence_number: 0, response: created };
        return [encodeNamed(1, data.type, data)];
      }
      const frames = await stored.next();
      if (frames) return frames;
      const response = isOver ? null : await ended();
      isOver = true;
      if (!response) return null;
      const from = (await lastId()) + 1;
      const last = lastEvents(response).map((event, index) => ({ event, id: from + index }));
      pieces = last
        .filter(({ id }) => id > after)
        .flatMap(({ event, id }) =>
          piecesOf(encodeNamed(id, event.type, { ...event, sequence_number: id - 1 })),
        );
      return [];
    },
  };
}

/**
 * The events that end a response's stream. If the response has no answer, the first is an error, on which most
 * clients throw: some would take anything else for a whole answer.
 */
function lastEvents(response: Members): readonly (Members & { readonly type: string })[] {
  const { status } = response;
  if (status === "completed" || status === "incomplete") return [{ type: `response.${status}`, response }];
  const failure = isMembers(response.error) ? response.error : CANCELLED;
  const { code, message } = failure;
  return [
    { type: "error", code, message, param: null, error: { code, message, param: null } },
    { type: "response.failed", response },
  ];
}

const CANCELLED = { code: "cancelled", message: "The response was cancelled." };
