/** The package's own model and ours, given the same bytes. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { field } from "../../../../src/base/json.ts";
import { chatCompletions } from "../../../../src/models/providers/chat-completions/model.ts";

export const PROMPT: LanguageModelV4CallOptions["prompt"] = [
  { role: "user", content: [{ type: "text", text: "hi" }] },
];

/** A request as it reaches the server. */
export interface SentRequest {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: unknown;
}

export interface Settings {
  readonly name?: string;
  readonly apiKey?: string;
  readonly headers?: Record<string, string>;
}

/** Both models of one configuration, with the same server. */
export function bothModels(
  answer: () => Response | Promise<Response>,
  { name = "up", ...settings }: Settings = {},
  sent: SentRequest[] = [],
): { readonly theirs: LanguageModelV4; readonly ours: LanguageModelV4 } {
  const fetch = Object.assign(
    async (url: string | URL | Request, init?: RequestInit) => {
      const { headers, body } = new Request(String(url), init);
      sent.push({
        url: String(url),
        headers: Object.fromEntries(headers),
        body: await new Response(body).json(),
      });
      return answer();
    },
    { preconnect() {} },
  );
  const given = { name, baseURL: "http://upstream.invalid/v1", headers: {}, fetch, ...settings };
  const provider = createOpenAICompatible({
    ...given,
    ...{ includeUsage: true, supportsStructuredOutputs: true },
  });
  return { theirs: provider.chatModel("m"), ours: chatCompletions(given)("m") };
}

export function eventStream(parts: readonly (Uint8Array | Error)[]): Response {
  const waiting = [...parts];
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const next = waiting.shift();
        if (next === undefined) controller.close();
        else if (next instanceof Error) controller.error(next);
        else controller.enqueue(next);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** The parts of an answer, and the error that ended it. */
export interface StreamedAnswer {
  readonly parts: unknown[];
  readonly failure: unknown;
}

/** Everything that a model streams, in a form in which equal answers are equal. */
export async function streamedBy(
  model: LanguageModelV4,
  options: Partial<LanguageModelV4CallOptions> = {},
): Promise<StreamedAnswer> {
  const parts: unknown[] = [];
  let failure: unknown = null;
  try {
    const { stream } = await model.doStream({ prompt: PROMPT, includeRawChunks: true, ...options });
    for await (const part of stream) parts.push(part);
  } catch (error) {
    failure = error;
  }
  const names = new Map<string, string>();
  const shown = JSON.stringify({ parts, failure }, (key, value: unknown) => {
    if (value instanceof Error) return shownError(value);
    return (key === "id" || key === "toolCallId") && typeof value === "string" ? nameOf(value, names) : value;
  });
  return JSON.parse(shown);
}

/** The text of a refused chunk's error is that of the library that checked it. */
function shownError(error: Error): object {
  const message = error.name === "AI_TypeValidationError" ? "" : error.message;
  return { name: error.name, message, value: field(error, "value"), data: field(error, "data") };
}

/** Ids that the tracker of tool calls makes are random. */
function nameOf(id: string, names: Map<string, string>): string {
  if (!/^[0-9A-Za-z]{16}$/.test(id)) return id;
  const name = names.get(id) ?? `made-${names.size}`;
  names.set(id, name);
  return name;
}
