import { pause, systemClock } from "../base/clock.ts";
import type { Hooks, Policy } from "./hooks.ts";
import type { Memory } from "./memory.ts";
import type { Message } from "./message.ts";
import { type ModelOption, namedModels } from "./model.ts";
import type { RunSettings } from "./run.ts";
import type { Tool } from "./tool.ts";
import { createToolbox } from "./toolbox.ts";

export interface AgentOptions {
  /** Models in the order in which they are tried: each step begins with the first that the policy allows. */
  readonly model: ModelOption | readonly ModelOption[];
  /** The system prompt. */
  readonly instructions?: string;
  readonly prompt: string;
  /** The conversation before the prompt. */
  readonly memory?: Memory;
  /**
   * Steps taken already, to go on from after the prompt: of a run that was interrupted, as its hooks saw them. They
   * count as steps. Calls of the last assistant message that have no result are made first; a host that does not know
   * whether a call was out MUST give it the result `unknown` instead.
   */
  readonly messages?: readonly Message[];
  readonly tools?: readonly Tool[];
  /** Answers that a run may take. Default 20. */
  readonly maxSteps?: number;
  /** UTF-16 units that models may send in one run: text, reasoning and arguments, of every attempt. Default 4,000,000. */
  readonly maxOutputCharacters?: number;
  /** UTF-16 units of one tool's output that the model is shown. Default 100,000. */
  readonly maxToolOutputCharacters?: number;
  /** Cancels the run: upstream and tools are told at once. */
  readonly signal?: AbortSignal;
  readonly hooks?: Hooks;
  readonly policy?: Policy;
  /** Milliseconds, for durations. Default `Date.now`. */
  readonly now?: () => number;
  /** Resolves after so many milliseconds, or rejects when the signal aborts. Default: a timer. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Ids for tool calls. Default: the model's own, numbered where it repeats one. */
  readonly newId?: () => string;
}

/** @throws TypeError that names the option. */
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
    now: options.now ?? Date.now,
    wait: options.wait ?? ((ms, signal) => pause(ms, systemClock, signal)),
    newId: options.newId,
  };
}

function positive(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) throw new TypeError(`${name}: must be a positive integer`);
  return value;
}
