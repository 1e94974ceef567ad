import { Elysia } from "elysia";
import { AGENT_HEADERS } from "../../dialects/calling-agent.ts";
import { CHAT } from "../../dialects/chat/chat.ts";
import type { DialectApi } from "../../dialects/dialect.ts";
import type { ModelAnswer, ModelCalls } from "../../dialects/model-calls.ts";
import { clientForm } from "../answer/client-errors.ts";
import { type EndpointContext, endpoint, type StreamReply } from "../endpoint.ts";

export interface DialectRouteParts {
  readonly modelCalls: ModelCalls;
}

/** Models in the APIs that existing clients know. */
export function dialectRoutes(endpoints: EndpointContext, { modelCalls }: DialectRouteParts) {
  const route = (api: DialectApi, operationId: string, summary: string) =>
    endpoint(
      endpoints,
      {
        ...{ action: "model.call", operationId, scope: "models:call", summary, tag: "Model calls" },
        counted: "later",
        raw: true,
        client: clientForm(api.errorBody),
        headers: AGENT_HEADERS,
        slow: true,
        streams: "The dialect's own events.",
        status: 200,
      },
      async ({ call, raw, request }) => {
        if (!raw) throw new Error("the body was not read");
        const { bytes, value, release } = raw;
        const { headers, signal } = request;
        try {
          const answer = await modelCalls.run(call, { api, bytes, value, headers, signal });
          const { requestId, caller } = call;
          const answered = { workspaceId: caller.workspaceId, requestId, request };
          return reply(answer, (whole) => endpoints.answers.relay(answered, new Blob([whole]).stream()));
        } finally {
          release();
        }
      },
    );
  const chat = route(CHAT, "chat_completions", "OpenAI Chat Completions: any model that the caller may use");
  return new Elysia({ prefix: "/v1" }).post("/chat/completions", chat.handle, chat.hook);
}

/** Longer answers take a place in the memory for long answers until their client has read them. */
const SHORT_ANSWER = 64 * 1024;

/** @param relay sends a long answer as its client reads it */
function reply(
  { status, contentType, model, intent, body }: ModelAnswer,
  relay: (whole: Uint8Array<ArrayBuffer>) => ReadableStream<Uint8Array>,
): StreamReply {
  const isShort = body instanceof ReadableStream || body.length <= SHORT_ANSWER;
  return {
    stream: (headers) =>
      new Response(isShort ? body : relay(body), {
        status,
        headers: {
          ...headers,
          "content-type": contentType,
          "gatehouse-model": model,
          "gatehouse-ledger": String(intent),
        },
      }),
    abandon() {
      if (body instanceof ReadableStream) void body.cancel();
    },
  };
}
