import { pause, systemClock } from "../base/clock.ts";
import type { Hooks, RunPolicy } from "./hooks.ts";
import type { Memory } from "./memory.ts";
import type { Message } from "./message.ts";
import { type ModelOption, namedModels } from "./model/model.ts";
import type { RunSettings } from "./run.ts";
import type { Tool } from "./tools/tool.ts";
import { createToolbox } from "./tools/toolbox.ts";

export interface AgentOptions {
  /** Models in the order in which they are tried. Each step begins with the first that the policy allows. */
  readonly model: ModelOption | readonly ModelOption[];
  /** The system prompt. */
  readonly instructions?: string;
  readonly prompt: string;
  /** The conversation before the prompt. */
  readonly memory?: Memory;
  /**
   * Steps already taken after the prompt by an interrupted run, as its hooks received them. They count as steps.
   * Calls of the last assistant message that have no result are made first; if the host does not know whether such a
   * call was made, it MUST provide the result `unknown`.
   */
  readonly messages?: readonly Message[];
  readonly tools?: readonly Tool[];
  /** The most answers in a run. Default 20. */
  readonly maxSteps?: number;
  /**
   * The most UTF-16 code units that models may send in one run: text, reasoning and arguments, over all attempts.
   * Default 4,000,000.
   */
  readonly maxOutputCharacters?: number;
  /** The most UTF-16 code units of a tool's output that the model is shown. Default 100,000. */
  readonly maxToolOutputCharacters?: number;
  /** The most bytes of tool results in one step, as JSON. Default 4 MiB, which exceeds every model's context window. */
  readonly maxStepBytes?: number;
  /** The most bytes of instructions, remembered messages, prompt, answers and results together, as JSON. Default 16 MiB. */
  readonly maxConversationBytes?: number;
  /** Cancels the run; providers and tools are notified immediately. */
  readonly signal?: AbortSignal;
  readonly hooks?: Hooks;
  readonly policy?: RunPolicy;
  /** The clock for durations, in milliseconds. Default `Date.now`. */
  readonly now?: () => number;
  /** Resolves after this many milliseconds, or rejects when the signal aborts. Default: a timer. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Generates ids for tool calls. Default: the model's own ids, numbered if they repeat. */
  readonly newId?: () => string;
}

const MIB = 1024 * 1024;

/** @throws TypeError naming the option */
export function settingsOf(options: AgentOptions): RunSettings {
  if (typeof options.prompt !== "string") throw new TypeError("prompt: must be a string");
  return {
    models: namedModels(options.model),
    instructions: options.instructions,
    toolbox: createToolbox(options.tools ?? []),
    hooks: options.hooks ?? {},
    policy: options.policy ?? {},
    maxSteps: positive("maxSteps", options.maxSteps ?? 20),
    maxOutputCharacters: positive("maxOutputCharacters", options.maxOutputCharacters ?? 4_000_000),
    maxToolOutputCharacters: positive("maxToolOutputCharacters", options.maxToolOutputCharacters ?? 100_000),
    maxStepBytes: positive("maxStepBytes", options.maxStepBytes ?? 4 * MIB),
    maxConversationBytes: positive("maxConversationBytes", options.maxConversationBytes ?? 16 * MIB),
    now: options.now ?? Date.now,
    wait: options.wait ?? ((ms, signal) => pause(ms, systemClock, signal)),
    newId: options.newId,
  };
}

function positive(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) throw new TypeError(`${name}: must be a positive integer`);
  return value;
}
