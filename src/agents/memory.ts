import type { Message } from "./message.ts";

/**
 * A conversation that outlives a run. `load` is called once before the first step. `append` is called once after the
 * answer, with the prompt and everything after it. A failed run appends nothing, so a conversation never contains a
 * question without its answer or a tool call without its result.
 */
export interface Memory {
  load(): readonly Message[] | Promise<readonly Message[]>;
  append(messages: readonly Message[]): void | Promise<void>;
}

export interface InMemoryOptions {
  /** If there are more messages than this, the oldest turns are forgotten. Default 1,000. */
  readonly maxMessages?: number;
}

/** A conversation kept in this process. Only whole turns are forgotten, so it always begins with a user message. */
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
