import type { Message } from "./message.ts";

/**
 * A conversation that outlives a run. `load` is called once before the first step. `append` is called once, after the
 * answer, with the prompt and everything that followed; a run that fails appends nothing, so that a conversation never
 * holds a question without its answer or a tool call without its result.
 */
export interface Memory {
  load(): readonly Message[] | Promise<readonly Message[]>;
  append(messages: readonly Message[]): void | Promise<void>;
}

export interface InMemoryOptions {
  /** Oldest turns are forgotten past this many messages. Default 1,000. */
  readonly maxMessages?: number;
}

/** A conversation kept in this process. Turns are forgotten whole: it always begins with a user's message. */
export function inMemory(options: InMemoryOptions = {}): Memory {
  const limit = options.maxMessages ?? 1_000;
  let messages: readonly Message[] = [];
  return {
    load: () => messages,
    append(added) {
      const all = [...messages, ...added];
      messages = all.length <= limit ? all : fromNextTurn(all, all.length - limit);
    },
  };
}

function fromNextTurn(messages: readonly Message[], start: number): readonly Message[] {
  const turn = messages.findIndex((message, index) => index >= start && message.role === "user");
  return turn < 0 ? [] : messages.slice(turn);
}
