import { pause, systemClock } from "../base/clock.ts";
import type { Hooks, RunPolicy } from "./hooks.ts";
import type { Memory } from "./memory.ts";
import type { Message, ToolCall, ToolResult } from "./message.ts";
import type { ModelOption, NamedModel } from "./model/model.ts";
import { type OutputOption, OutputRepair, outputInstructions } from "./output.ts";
import type { Tool } from "./tools/tool.ts";
import { createToolbox } from "./tools/toolbox.ts";

export interface AgentOptions {
  /** Models in the order in which they are tried. Each step begins with the first that the policy allows. */
  readonly model: ModelOption | readonly ModelOption[];
  /** The system prompt. */
  readonly instructions?: string;
  /** The user's input: a string, or a conversation whose last message comes from the user. */
  readonly prompt: string | readonly Message[];
  /** Makes the answer a JSON value described by a schema. Default: the answer is text. */
  readonly output?: OutputOption;
  /** The conversation before the prompt. */
  readonly memory?: Memory;
  /**
   * Steps already taken after the prompt by an interrupted run, as its hooks received them. They count as steps.
   * Calls of the last assistant message that have no result are made first; if the host does not know whether such a
   * call was made, it MUST provide the result `unknown`. With `output`, they may include final answers: invalid ones,
   * and the last one.
   */
  readonly messages?: readonly Message[];
  readonly tools?: readonly Tool[];
  /** The maximum number of answers in a run. Default 20. */
  readonly maxSteps?: number;
  /**
   * The maximum number of UTF-16 code units that models may send in one run: text, reasoning and arguments, over all
   * attempts. Default 4,000,000.
   */
  readonly maxOutputCharacters?: number;
  /** The maximum number of UTF-16 code units of a tool's output that the model is shown. Default 100,000. */
  readonly maxToolOutputCharacters?: number;
  /**
   * The maximum number of bytes of tool results in one step, as JSON. Default 4 MiB, which exceeds every model's
   * context window.
   */
  readonly maxStepBytes?: number;
  /**
   * The maximum total size in bytes, as JSON, of instructions, remembered messages, prompt, answers and results.
   * Default 16 MiB.
   */
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

/** The state from which a run resumes. */
interface RunProgress {
  /** Complete steps and what preceded them. No call in these messages lacks a result. */
  readonly messages: readonly Message[];
  readonly steps: number;
  /** Calls of the last step without a result, and its existing results. */
  readonly pending: readonly ToolCall[];
  readonly results: readonly ToolResult[];
}

const MIB = 1024 * 1024;

/** The options of a run, validated and with defaults. */
export type RunOptions = ReturnType<typeof runOptions>;

/**
 * Fills in the defaults. Models, tools and messages are converted to the form that a run needs.
 * @throws TypeError naming the option
 */
export function runOptions({ model, tools, messages, prompt, output, ...options }: AgentOptions) {
  const models = isList(model) ? model : [model];
  if (models.length === 0) throw new TypeError("model: at least one model is needed");
  const repair = output && new OutputRepair(output);
  return {
    ...options,
    prompt: promptMessages(prompt),
    /** The instructions for the model, including the schema of its output. */
    instructions: outputInstructions(options.instructions, output),
    outputSchema: output?.schema,
    repair,
    models: models.map(
      (each): NamedModel =>
        "doStream" in each ? { id: `${each.provider}/${each.modelId}`, model: each } : each,
    ),
    toolbox: createToolbox(tools ?? [], options.policy),
    progress: progressOf(repair?.resume(messages ?? []) ?? messages ?? [], repair !== undefined),
    hooks: options.hooks ?? {},
    policy: options.policy ?? {},
    maxSteps: positive("maxSteps", options.maxSteps ?? 20),
    maxOutputCharacters: positive("maxOutputCharacters", options.maxOutputCharacters ?? 4_000_000),
    maxToolOutputCharacters: positive("maxToolOutputCharacters", options.maxToolOutputCharacters ?? 100_000),
    maxStepBytes: positive("maxStepBytes", options.maxStepBytes ?? 4 * MIB),
    maxConversationBytes: positive("maxConversationBytes", options.maxConversationBytes ?? 16 * MIB),
    now: options.now ?? Date.now,
    wait: options.wait ?? ((ms, signal) => pause(ms, systemClock, signal)),
  };
}

function positive(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) throw new TypeError(`${name}: must be a positive integer`);
  return value;
}

/** @throws TypeError if the conversation does not end with the user's message */
function promptMessages(prompt: string | readonly Message[]): readonly Message[] {
  if (typeof prompt === "string") return [{ role: "user", text: prompt }];
  if (isList(prompt) && prompt.at(-1)?.role === "user") return prompt;
  throw new TypeError("prompt: must be a string, or messages whose last one has the role user");
}

/** `Array.isArray` cannot narrow a readonly array out of a union. */
function isList<Item>(value: Item | readonly Item[]): value is readonly Item[] {
  return Array.isArray(value);
}

/**
 * Finds where to resume. A final answer may still need to be checked if the output has a schema.
 * @throws TypeError if the messages end with an answer and nothing is left to do
 */
function progressOf(messages: readonly Message[], isChecked: boolean): RunProgress {
  const steps = messages.filter((message) => message.role === "assistant").length;
  const last = messages.at(-1);
  const results = last?.role === "tool" ? last.results : [];
  const asked = last?.role === "tool" ? messages.at(-2) : last;
  if (asked?.role !== "assistant") return { messages, steps, pending: [], results: [] };
  if (asked.toolCalls.length === 0 && isChecked) return { messages, steps, pending: [], results: [] };
  if (asked.toolCalls.length === 0)
    throw new TypeError("messages: the last message is already a final answer");
  const answered = new Set(results.map(({ id }) => id));
  const pending = asked.toolCalls.filter(({ id }) => !answered.has(id));
  if (pending.length === 0) return { messages, steps, pending, results: [] };
  return { messages: last?.role === "tool" ? messages.slice(0, -1) : messages, steps, pending, results };
}
