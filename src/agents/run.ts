import { RunFailure } from "./errors.ts";
import type { Message } from "./message.ts";
import { addUsage, NO_USAGE, type TokenUsage } from "./model/usage.ts";
import { type AgentOptions, type RunOptions, runOptions } from "./options.ts";

/** One run: its options, and what it has used so far. */
export class RunState {
  readonly options: RunOptions;
  /** Aborts when the caller's signal does, or when the events are no longer read. */
  readonly signal: AbortSignal;
  steps = 0;
  #usage: TokenUsage = NO_USAGE;
  #outputCharacters = 0;
  readonly #callIds = new Set<string>();

  /** @throws TypeError for invalid options */
  constructor(options: AgentOptions, signal: AbortSignal) {
    this.options = runOptions(options);
    this.signal = signal;
  }

  get usage(): TokenUsage {
    return this.#usage;
  }

  charge(usage: TokenUsage): void {
    this.#usage = addUsage(this.#usage, usage);
  }

  /**
   * Counts everything that a model sends, of any kind and in any attempt, against the limit.
   * @throws RunFailure if the limit is exceeded
   */
  receive(characters: number): void {
    this.#outputCharacters += characters;
    const limit = this.options.maxOutputCharacters;
    if (this.#outputCharacters > limit) {
      throw new RunFailure("internal", `The models' output exceeded ${limit} characters.`);
    }
  }

  /** Keeps the ids in a conversation from being given to new calls. */
  reserveCallIds(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.role === "assistant") for (const call of message.toolCalls) this.#callIds.add(call.id);
    }
  }

  /** A unique id for a call. Some providers number calls from 0 in every answer. */
  callId(given: string): string {
    const base = this.options.newId?.() ?? given;
    let id = base;
    for (let number = 2; this.#callIds.has(id); number++) id = `${base}_${number}`;
    this.#callIds.add(id);
    return id;
  }
}
