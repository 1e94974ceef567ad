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
      async ({ call, raw, request: { headers, signal } }) => {
        if (!raw) throw new Error("the body was not read");
        const { bytes, value, release } = raw;
        try {
          return reply(await modelCalls.run(call, { api, bytes, value, headers, signal }));
        } finally {
          release();
        }
      },
    );
  const chat = route(CHAT, "chat_completions", "OpenAI Chat Completions: any model that the caller may use");
  return new Elysia({ prefix: "/v1" }).post("/chat/completions", chat.handle, chat.hook);
}

function reply({ status, contentType, model, intent, body }: ModelAnswer): StreamReply {
  return {
    stream: (headers) =>
      new Response(body, {
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
