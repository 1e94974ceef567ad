import { RunFailure } from "./errors.ts";
import type { Hooks, RunPolicy } from "./hooks.ts";
import type { Message, ToolResult } from "./message.ts";
import type { NamedModel } from "./model/model.ts";
import { exceedsBytes } from "./model/request-size.ts";
import { addUsage, NO_USAGE, type TokenUsage } from "./model/usage.ts";
import type { Tool } from "./tools/tool.ts";
import type { Toolbox } from "./tools/toolbox.ts";

/** The options of a run, validated and with defaults. */
export interface RunSettings {
  readonly models: readonly NamedModel[];
  readonly instructions: string | undefined;
  readonly toolbox: Toolbox;
  readonly hooks: Hooks;
  readonly policy: RunPolicy;
  readonly maxSteps: number;
  readonly maxOutputCharacters: number;
  readonly maxToolOutputCharacters: number;
  readonly maxStepBytes: number;
  readonly maxConversationBytes: number;
  readonly now: () => number;
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly newId: (() => string) | undefined;
}

/** One run: its settings, and what it has used so far. */
export class RunState {
  readonly settings: RunSettings;
  /** Aborts when the caller's signal does, or when nobody reads the events any more. */
  readonly signal: AbortSignal;
  steps = 0;
  #usage: TokenUsage = NO_USAGE;
  #outputCharacters = 0;
  readonly #callIds = new Set<string>();

  constructor(settings: RunSettings, signal: AbortSignal) {
    this.settings = settings;
    this.signal = signal;
  }

  get usage(): TokenUsage {
    return this.#usage;
  }

  /** The tools currently offered to the model. */
  offeredTools(): readonly Tool[] {
    const { toolbox, policy } = this.settings;
    return toolbox.tools.filter((tool) => policy.allowTool?.(tool.name) ?? true);
  }

  charge(usage: TokenUsage): void {
    this.#usage = addUsage(this.#usage, usage);
  }

  /**
   * Counts everything a model sends, of any kind and attempt, against the limit.
   * @throws RunFailure if the limit is exceeded
   */
  receive(characters: number): void {
    this.#outputCharacters += characters;
    const limit = this.settings.maxOutputCharacters;
    if (this.#outputCharacters > limit) {
      throw new RunFailure("internal", `The models' output exceeded ${limit} characters.`);
    }
  }

  /** @throws RunFailure if the tool results of one step have too many bytes */
  limitStep(results: readonly ToolResult[]): void {
    const limit = this.settings.maxStepBytes;
    if (!exceedsBytes({ instructions: undefined, messages: [{ role: "tool", results }] }, limit)) return;
    throw new RunFailure("tool_loop_limit", `The tool results of one step exceed ${limit} bytes.`);
  }

  /** @throws RunFailure if the conversation has too many bytes to be sent */
  limitConversation(messages: readonly Message[]): void {
    const { instructions, maxConversationBytes: limit } = this.settings;
    if (!exceedsBytes({ instructions, messages }, limit)) return;
    throw new RunFailure("tool_loop_limit", `The conversation exceeds ${limit} bytes.`);
  }

  /** Keeps the ids in a conversation from being given to new calls. */
  reserveCallIds(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.role === "assistant") for (const call of message.toolCalls) this.#callIds.add(call.id);
    }
  }

  /** A unique id for a call. Some providers number calls from 0 in every answer. */
  callId(given: string): string {
    const base = this.settings.newId?.() ?? given;
    let id = base;
    for (let number = 2; this.#callIds.has(id); number++) id = `${base}_${number}`;
    this.#callIds.add(id);
    return id;
  }
}

/** Distinguishes promises from plain values, so a synchronous hook costs no turn of the event loop. */
export function isPromise<Value>(value: Value | PromiseLike<Value>): value is PromiseLike<Value> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
