import type { EventStore } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";

/**
 * Maximum number of events kept per session for a client that lost its connection, and their maximum number of
 * characters.
 */
const EVENTS = 64;
const CHARACTERS_PER_SESSION = 256 * 1024;
/**
 * Characters of the events of all sessions. Above this, a session keeps no new events until others release theirs.
 */
const CHARACTERS = 64 * 1024 * 1024;
/** The share of these characters that one workspace's sessions may use. At least half is left to others. */
const CHARACTERS_PER_WORKSPACE = CHARACTERS / 2;

/** The SDK's name of the stream of messages that answer no request. */
const UNSOLICITED = "_GET_stream";
/** Marks their ids if other nodes must recognise them. */
const UNSOLICITED_MARK = "u";

/**
 * Whether an event of another node belongs to the stream of messages that answer no request. It need not be resumed: a
 * new one begins with what the client has missed.
 */
export function isUnsolicited(id: string): boolean {
  return id.includes(`.${UNSOLICITED_MARK}`);
}

/** The memory used by the events of all sessions. */
export class SessionEventMemory {
  readonly #heldBy = new Map<number, number>();
  #held = 0;

  get held(): number {
    return this.#held;
  }

  /** Returns false if there is no room. */
  take(workspaceId: number, characters: number): boolean {
    const held = (this.#heldBy.get(workspaceId) ?? 0) + characters;
    if (held > CHARACTERS_PER_WORKSPACE || this.#held + characters > CHARACTERS) return false;
    this.#held += characters;
    this.#heldBy.set(workspaceId, held);
    return true;
  }

  give(workspaceId: number, characters: number): void {
    this.#held -= characters;
    const held = (this.#heldBy.get(workspaceId) ?? 0) - characters;
    if (held > 0) this.#heldBy.set(workspaceId, held);
    else this.#heldBy.delete(workspaceId);
  }
}

interface StoredEvent {
  readonly id: string;
  readonly stream: string;
  readonly number: number;
  readonly message: JSONRPCMessage;
  readonly characters: number;
}

/**
 * The last events of one session, so that a broken stream can be resumed (specification 2025-11-25, "Resumability and
 * Redelivery"). Ids count up within the session on this node. An answer larger than the limit cannot be resumed.
 */
export class SessionEvents implements EventStore {
  readonly #memory: SessionEventMemory;
  readonly #workspaceId: number;
  readonly #prefix: string;
  #kept: StoredEvent[] = [];
  #characters = 0;
  #last = 0;

  /** @param prefix of all ids */
  constructor(memory: SessionEventMemory, workspaceId: number, prefix: string = "") {
    this.#memory = memory;
    this.#prefix = prefix;
    this.#workspaceId = workspaceId;
  }

  /** Number of events and characters currently kept. */
  get size(): { readonly events: number; readonly characters: number } {
    return { events: this.#kept.length, characters: this.#characters };
  }

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    this.#last += 1;
    const number = this.#last;
    const mark = this.#prefix !== "" && stream === UNSOLICITED ? UNSOLICITED_MARK : "";
    const id = `${this.#prefix}${mark}${number}`;
    const characters = JSON.stringify(message).length;
    if (characters <= CHARACTERS_PER_SESSION && this.#memory.take(this.#workspaceId, characters)) {
      this.#kept.push({ id, stream, number, message, characters });
      this.#characters += characters;
      while (this.#kept.length > EVENTS || this.#characters > CHARACTERS_PER_SESSION) this.#forgetFirst();
    }
    return id;
  }

  /** Whether this event is an answer and the last one of its stream. */
  isLastAnswer(id: string): boolean {
    const stream = this.#kept.find((kept) => kept.id === id)?.stream;
    const last = this.#kept.findLast((kept) => kept.stream === stream);
    return last?.id === id && ("result" in last.message || "error" in last.message);
  }

  /** Releases everything when the session has ended. */
  forget(): void {
    while (this.#kept.length > 0) this.#forgetFirst();
  }

  #forgetFirst(): void {
    const characters = this.#kept.shift()?.characters ?? 0;
    this.#characters -= characters;
    this.#memory.give(this.#workspaceId, characters);
  }

  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    return this.#kept.find((kept) => kept.id === id)?.stream;
  }

  async replayEventsAfter(
    id: string,
    { send }: { send: (eventId: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const event = this.#kept.find((kept) => kept.id === id);
    if (event === undefined) throw new Error("The event is no longer available.");
    const { stream, number: after } = event;
    for (const kept of [...this.#kept]) {
      // The first event of a stream has no message: it only gives an id to resume from.
      if (kept.stream !== stream || kept.number <= after || !("jsonrpc" in kept.message)) continue;
      await send(kept.id, kept.message);
    }
    return stream;
  }
}
