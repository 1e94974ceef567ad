import type { EventStore } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";

/** Events kept for a client that lost its connection. */
const EVENTS = 64;
/** Characters of the events that are kept, over all sessions; past that the oldest of the session that adds one go. */
const CHARACTERS_PER_SESSION = 256 * 1024;

interface Kept {
  readonly id: string;
  readonly stream: string;
  readonly message: JSONRPCMessage;
  readonly characters: number;
}

/**
 * The last events of one session, so that a stream that broke can be resumed (specification 2025-11-25, "Resumability and
 * Redelivery"). Ids count up within the session. An answer that is larger than all that is kept cannot be resumed.
 */
export class SessionEvents implements EventStore {
  #kept: Kept[] = [];
  #characters = 0;
  #last = 0;

  /** Events and characters that are held now. */
  get size(): { readonly events: number; readonly characters: number } {
    return { events: this.#kept.length, characters: this.#characters };
  }

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    this.#last += 1;
    const id = String(this.#last);
    const characters = sizeOf(message);
    if (characters <= CHARACTERS_PER_SESSION) {
      this.#kept.push({ id, stream, message, characters });
      this.#characters += characters;
      while (this.#kept.length > EVENTS || this.#characters > CHARACTERS_PER_SESSION) {
        this.#characters -= this.#kept.shift()?.characters ?? 0;
      }
    }
    return id;
  }

  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    return this.#kept.find((kept) => kept.id === id)?.stream;
  }

  async replayEventsAfter(
    id: string,
    { send }: { send: (eventId: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const stream = await this.getStreamIdForEventId(id);
    if (stream === undefined) throw new Error("The event is not kept any more.");
    const after = Number(id);
    for (const kept of [...this.#kept]) {
      // The first event of a stream carries no message: it only names the place to resume from.
      if (kept.stream !== stream || Number(kept.id) <= after || !("jsonrpc" in kept.message)) continue;
      await send(kept.id, kept.message);
    }
    return stream;
  }
}

/** About as long as its JSON, without making it: answers are counted by their texts. */
function sizeOf(message: JSONRPCMessage): number {
  return textLength(message, 0);
}

const DEPTH = 8;

function textLength(value: unknown, depth: number): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 8;
  // Deeper than answers are: what is there is small, or counted too low.
  if (depth > DEPTH) return 64;
  let length = 2;
  if (Array.isArray(value)) for (const item of value) length += textLength(item, depth + 1);
  else for (const key in value) length += key.length + 4 + textLength(Reflect.get(value, key), depth + 1);
  return length;
}
