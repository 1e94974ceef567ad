import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { textBytes } from "../model/request-size.ts";
import { estimateTokens } from "../model/usage.ts";
import { composeAnswer, quoteSentTexts } from "./answer.ts";
import { type PlannedCall, planCalls, planClientCalls } from "./plan.ts";
import { sentTexts } from "./sent-texts.ts";
import { currentTurn, textOfPrompt } from "./turn.ts";

const TEXT_ID = "answer";

/**
 * Options for a conversation that a client sends itself: the model then quotes from all of it, and calls only tools
 * that search, because the client runs them.
 */
export const CLIENT_CONVERSATION: NonNullable<LanguageModelV4CallOptions["providerOptions"]> = {
  builtin: { conversation: "client" },
};

/**
 * `builtin/extractive`, a model without weights and without a network. It calls the offered tools whose arguments it
 * can fill in (tools that require no arguments, or a single string that can be the question), starting with the
 * vault's tools. It then quotes the best passages found, with their sources. Without results, it quotes from a
 * client's conversation (`CLIENT_CONVERSATION`). Deterministic: the same conversation always gets the same answer.
 */
export function extractiveModel(): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "builtin",
    modelId: "extractive",
    supportedUrls: {},
    async doGenerate(options) {
      const { calls, text, usage, finishReason } = think(options);
      const content: LanguageModelV4Content[] = calls.map(callPart);
      if (text !== "") content.push({ type: "text", text });
      return { content, finishReason, usage, warnings: [] };
    },
    async doStream(options) {
      return { stream: streamOf(parts(think(options)), options.abortSignal) };
    },
  };
}

interface ExtractiveResponse {
  readonly calls: readonly PlannedCall[];
  readonly text: string;
  readonly usage: LanguageModelV4Usage;
  readonly finishReason: LanguageModelV4FinishReason;
}

function think(options: LanguageModelV4CallOptions): ExtractiveResponse {
  options.abortSignal?.throwIfAborted();
  const isClients = options.providerOptions?.builtin?.conversation === "client";
  const { calls, text: whole } = isClients ? replyToClient(options) : replyInTask(options);
  const text = limited(whole, options.maxOutputTokens);
  const sent = text === "" ? calls.map(({ input }) => input).join("") : text;
  const unified = calls.length > 0 ? "tool-calls" : text.length < whole.length ? "length" : "stop";
  return {
    calls,
    text,
    usage: estimatedUsage(textOfPrompt(options.prompt), sent),
    finishReason: { unified, raw: undefined },
  };
}

type Reply = Pick<ExtractiveResponse, "calls" | "text">;

function replyInTask({ prompt, tools = [] }: LanguageModelV4CallOptions): Reply {
  const turn = currentTurn(prompt);
  const calls = turn.results.length > 0 ? [] : planCalls(turn, tools);
  return { calls, text: calls.length > 0 ? "" : composeAnswer(turn) };
}

function replyToClient(options: LanguageModelV4CallOptions): Reply {
  const sent = sentTexts(options.prompt);
  const turn = { ...currentTurn(options.prompt), question: sent.question };
  if (turn.results.length > 0) return { calls: [], text: composeAnswer(turn) };
  const calls = planClientCalls(turn, options);
  return { calls, text: calls.length > 0 ? "" : quoteSentTexts(sent) };
}

/** The beginning of the text, up to this number of tokens. */
function limited(text: string, mostTokens: number | undefined): string {
  if (mostTokens === undefined || estimateTokens(textBytes(text)) <= mostTokens) return text;
  const most = mostTokens * BYTES_PER_TOKEN;
  return new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, most), { stream: true });
}

/** The ratio used by `estimateTokens`. */
const BYTES_PER_TOKEN = 4;

/** There is no tokenizer, so four bytes count as a token. */
function estimatedUsage(input: string, output: string): LanguageModelV4Usage {
  const total = estimateTokens(textBytes(output));
  return {
    inputTokens: {
      total: estimateTokens(textBytes(input)),
      noCache: undefined,
      cacheRead: undefined,
      cacheWrite: undefined,
    },
    outputTokens: { total, text: total, reasoning: undefined },
  };
}

function callPart({ id, tool, input }: PlannedCall) {
  return { type: "tool-call", toolCallId: id, toolName: tool, input } as const;
}

function* parts({
  calls,
  text,
  usage,
  finishReason,
}: ExtractiveResponse): Generator<LanguageModelV4StreamPart, void> {
  yield { type: "stream-start", warnings: [] };
  for (const call of calls) yield callPart(call);
  if (text !== "") {
    yield { type: "text-start", id: TEXT_ID };
    for (const [word] of text.matchAll(/\S*\s+|\S+/g)) yield { type: "text-delta", id: TEXT_ID, delta: word };
    yield { type: "text-end", id: TEXT_ID };
  }
  yield { type: "finish", usage, finishReason };
}

/** Produces one part per read, so a reader that stops causes no further work. */
function streamOf(
  source: Generator<LanguageModelV4StreamPart, void>,
  signal: AbortSignal | undefined,
): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream({
    pull(controller) {
      if (signal?.aborted) return controller.error(signal.reason);
      const next = source.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
  });
}
