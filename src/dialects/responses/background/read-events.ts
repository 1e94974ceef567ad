import { encodeNamed, piecesOf } from "../../../tasks/events/frames.ts";
import type { EventReader } from "../../../tasks/events/hub.ts";
import { isMembers, type Members } from "../../json.ts";

export interface ResponseEventsParts {
  /** The response as it was dispatched. */
  readonly created: Members;
  /** Reads the events in between, from the store or from memory. */
  readonly stored: EventReader;
  /** Called when reading has begun, and when it is over. */
  readonly begun: (reading: ResponseEvents) => void;
  readonly over: (reading: ResponseEvents) => void;
  /** The response as it ended; null if it has not. @throws Problem if it can no longer be read */
  ended(): Promise<Members | null>;
  /** The highest id of the events in between. */
  lastId(): Promise<number>;
}

/** Reads the events of a background response after an id. Ids are `sequence_number` plus 1. */
export class ResponseEvents implements EventReader {
  readonly #parts: ResponseEventsParts;
  readonly #after: number;
  #isFirst: boolean;
  #hasBegun = false;
  #isOver = false;
  #isClosed = false;
  /** What is left of the last events. */
  #pieces: readonly Uint8Array[] = [];

  constructor(parts: ResponseEventsParts, after: number) {
    this.#parts = parts;
    this.#after = after;
    this.#isFirst = after < 1;
  }

  async next(): Promise<readonly Uint8Array[] | null> {
    if (this.#isClosed) return null;
    // Only now: a read that never begins is never closed either.
    if (!this.#hasBegun) this.#parts.begun(this);
    this.#hasBegun = true;
    const next = await this.#next();
    return this.#isClosed ? null : next;
  }

  close(): void {
    this.#isClosed = true;
    this.#pieces = [];
    this.#parts.stored.close();
    this.#parts.over(this);
  }

  /** Ends if the last events are being sent, since they contain erased texts. */
  erased(): void {
    if (this.#isOver) this.close();
  }

  async #next(): Promise<readonly Uint8Array[] | null> {
    if (this.#isFirst) {
      this.#isFirst = false;
      const data = { type: "response.created", sequence_number: 0, response: this.#parts.created };
      return [encodeNamed(1, data.type, data)];
    }
    if (!this.#isOver) {
      const frames = await this.#parts.stored.next();
      if (frames || this.#isClosed) return frames;
      this.#isOver = true;
      const response = await this.#parts.ended();
      this.#pieces = response ? await this.#lastPieces(response) : [];
    }
    const [piece, ...rest] = this.#pieces;
    this.#pieces = rest;
    return piece ? [piece] : null;
  }

  async #lastPieces(response: Members): Promise<readonly Uint8Array[]> {
    const from = (await this.#parts.lastId()) + 1;
    const last = lastEvents(response).map((event, index) => ({ event, id: from + index }));
    return last
      .filter(({ id }) => id > this.#after)
      .flatMap(({ event, id }) =>
        piecesOf(encodeNamed(id, event.type, { ...event, sequence_number: id - 1 })),
      );
  }
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
