import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import type { AgentEvent } from "../../src/agents/index.ts";

/**
 * A scripted model's next move: a stream part, an error that breaks the stream, or a wait that only an abort ends.
 */
export type Move = LanguageModelV4StreamPart | { readonly type: "break"; readonly error: unknown } | "hang";
/** One answer: moves, or an error that refuses the request itself. */
export type Script = readonly Move[] | { readonly refuse: unknown };

export interface ScriptedModel extends LanguageModelV4 {
  readonly calls: LanguageModelV4CallOptions[];
  /** Signals that were aborted, and streams that were cancelled, before their answer was complete. */
  readonly aborted: number[];
}

export interface ScriptedOptions {
  /** Ignores the abort signal, as a careless provider would. */
  readonly isDeaf?: boolean;
}

/** A model in memory that plays its answers in order, then repeats the last one. */
export function scripted(
  id: string,
  scripts: readonly Script[],
  options: ScriptedOptions = {},
): ScriptedModel {
  const calls: LanguageModelV4CallOptions[] = [];
  const aborted: number[] = [];
  return {
    specificationVersion: "v4",
    provider: "test",
    modelId: id,
    supportedUrls: {},
    calls,
    aborted,
    doGenerate: () => Promise.reject(new Error("not scripted")),
    async doStream(call) {
      const number = calls.push(call);
      const script = scripts[Math.min(number, scripts.length) - 1] ?? [];
      if ("refuse" in script) throw script.refuse;
      const moves = [...script];
      if (!options.isDeaf) call.abortSignal?.addEventListener("abort", () => aborted.push(number));
      return {
        stream: new ReadableStream<LanguageModelV4StreamPart>({
          async pull(controller) {
            const move = moves.shift();
            if (move === undefined) controller.close();
            else if (move === "hang") await new Promise(() => {});
            else if (move.type === "break") controller.error(move.error);
            else controller.enqueue(move);
          },
        }),
      };
    },
  };
}

export function text(...deltas: readonly string[]): LanguageModelV4StreamPart[] {
  return deltas.map((delta) => ({ type: "text-delta", id: "0", delta }));
}

export function call(toolName: string, input: unknown, toolCallId = "c1"): LanguageModelV4StreamPart {
  const json = typeof input === "string" ? input : JSON.stringify(input);
  return { type: "tool-call", toolCallId, toolName, input: json };
}

export function finish(
  unified: Extract<LanguageModelV4StreamPart, { type: "finish" }>["finishReason"]["unified"] = "stop",
  tokens: readonly [input: number, output: number] | undefined = [10, 5],
): LanguageModelV4StreamPart {
  return { type: "finish", finishReason: { unified, raw: undefined }, usage: usage(tokens) };
}

export function usage(tokens: readonly [number, number] | undefined): LanguageModelV4Usage {
  return {
    inputTokens: { total: tokens?.[0], noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: tokens?.[1], text: undefined, reasoning: undefined },
  };
}

/** Usage without token counts. */
export const uncounted: LanguageModelV4StreamPart = {
  type: "finish",
  finishReason: { unified: "stop", raw: undefined },
  usage: usage(undefined),
};

export function answers(...deltas: readonly string[]): Script {
  return [...text(...deltas), finish()];
}

/** An error like the AI SDK's, containing details that must not leak. */
export function httpError(statusCode: number): Error {
  return Object.assign(new Error("SECRET upstream text"), {
    statusCode,
    url: "https://SECRET.example",
    responseBody: "SECRET",
  });
}

export async function collect(events: AsyncIterable<AgentEvent>): Promise<AgentEvent[]> {
  const all: AgentEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

export function types(events: readonly AgentEvent[]): string[] {
  return events.map(({ type }) => type);
}

/** The text that remains on a reader's screen. */
export function textSince(events: readonly AgentEvent[]): string {
  let kept: string[] = [];
  for (const event of events) {
    if (event.type === "output.reset" || event.type === "tool.result") kept = [];
    else if (event.type === "output.delta") kept.push(event.text);
  }
  return kept.join("");
}

export function only<Type extends AgentEvent["type"]>(
  events: readonly AgentEvent[],
  type: Type,
): Extract<AgentEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<AgentEvent, { type: Type }> => event.type === type);
}

export function last(events: readonly AgentEvent[]): AgentEvent | undefined {
  return events.at(-1);
}
