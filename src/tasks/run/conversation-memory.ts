import { AgentDenied, type Message } from "../../agents/index.ts";
import { type FairPlace, FairPlaces } from "../../limits/fair-places.ts";

const MI = 1024 * 1024;
/** Characters of each conversation that do not count: as many as the longest prompt, or as most models can read. */
const ORDINARY = MI;
/**
 * Further characters allowed for all conversations together. A character takes one or two bytes, and the same again
 * in a request.
 */
const WHOLE = 256 * MI;
const PER_WORKSPACE = 128 * MI;

/** The code of the refusal of a conversation that exceeds the available memory. */
export const CONVERSATIONS_FULL = "conversations_full";

export interface ConversationRoomOptions {
  readonly ordinary?: number;
  readonly perWorkspace?: number;
  readonly whole?: number;
}

/**
 * Bounds the memory of all conversations in progress, by workspace and in total. When it is used up, a workspace below
 * its equal share takes memory from the workspace with the most: that workspace's least recently grown conversation ends.
 */
export class ConversationMemory {
  readonly #ordinary: number;
  readonly #places: FairPlaces<number>;

  constructor({
    ordinary = ORDINARY,
    perWorkspace = PER_WORKSPACE,
    whole = WHOLE,
  }: ConversationRoomOptions = {}) {
    this.#ordinary = ordinary;
    this.#places = new FairPlaces({ perHolder: perWorkspace, total: whole, refused: noRoom });
  }

  /** Counted characters. */
  get held(): number {
    return this.#places.taken;
  }

  /** @param lost ends the conversation with the given error */
  open(workspaceId: number, lost: (error: AgentDenied) => void): OpenConversation {
    return new OpenConversation(this.#ordinary, (characters) => {
      const place = this.#places.take(workspaceId, characters);
      place.endsBy(() => lost(noRoom(true)));
      return place;
    });
  }
}

/** The memory of one conversation. MUST be closed. */
export class OpenConversation {
  readonly #ordinary: number;
  readonly #take: (characters: number) => FairPlace<number>;
  #place: FairPlace<number> | null = null;
  #messages = 0;
  #characters = 0;

  constructor(ordinary: number, take: (characters: number) => FairPlace<number>) {
    this.#ordinary = ordinary;
    this.#take = take;
  }

  /**
   * Counts the messages that were added since the last call.
   * @param messages all messages so far
   * @throws AgentDenied with `CONVERSATIONS_FULL`
   */
  hold(messages: readonly Message[]): void {
    const added = messages.slice(this.#messages);
    if (added.length === 0) return;
    this.add(added.reduce((sum, message) => sum + JSON.stringify(message).length, 0));
    this.#messages = messages.length;
  }

  /** @throws AgentDenied with `CONVERSATIONS_FULL`; only what was added before counts then */
  add(characters: number): void {
    const before = this.#characters;
    try {
      this.#count(before + characters);
    } catch (error) {
      // Always fits: nobody else can have taken its place in the meantime.
      this.#count(before);
      throw error;
    }
  }

  #count(characters: number): void {
    this.#place?.release();
    this.#place = characters > this.#ordinary ? this.#take(characters - this.#ordinary) : null;
    this.#characters = characters;
  }

  close(): void {
    this.#place?.release();
  }
}

function noRoom(isOwn: boolean): AgentDenied {
  const whose = isOwn ? "workspace" : "server";
  return new AgentDenied(
    CONVERSATIONS_FULL,
    `The ${whose}'s conversations in progress are too long in total.`,
  );
}
