import { Elysia } from "elysia";
import Type, { type TObject } from "typebox";
import { AGENT_HEADERS } from "../../dialects/calling-agent.ts";
import { CHAT } from "../../dialects/chat/chat.ts";
import type { ClientRequest, ModelAnswer } from "../../dialects/client-request.ts";
import type { DialectApi } from "../../dialects/dialect.ts";
import { EMBEDDINGS } from "../../dialects/embeddings/embeddings.ts";
import { isMembers } from "../../dialects/json.ts";
import { MESSAGES } from "../../dialects/messages/messages.ts";
import type { ModelCalls } from "../../dialects/model-calls.ts";
import type { ResponsesClient } from "../../dialects/responses/prepare-request.ts";
import type { ResponseCalls } from "../../dialects/responses/response-calls.ts";
import { RESPONSES } from "../../dialects/responses/responses.ts";
import type { TokenCount, TokenCounter } from "../../dialects/token-counts.ts";
import type { Call } from "../../gate/call.ts";
import type { Reply } from "../answer/answer.ts";
import { clientForm } from "../answer/client-errors.ts";
import {
  CHAT_BODIES,
  COUNT_BODIES,
  type DialectBodies,
  EMBEDDINGS_BODIES,
  MESSAGES_BODIES,
  RESPONSES_BODIES,
} from "../docs/dialect-bodies.ts";
import { type EndpointContext, endpoint, type StreamReply } from "../endpoint.ts";
import { type EventReplyParts, eventReply } from "../streams/event-reply.ts";
import { streamMemory } from "../streams/stream-memory.ts";

export interface DialectRouteParts extends EventReplyParts {
  readonly modelCalls: ModelCalls;
  readonly responseCalls: ResponseCalls;
  readonly tokenCounts: TokenCounter;
}

type DialectForm = Pick<DialectApi, "dialect" | "errorBody">;
/** Calls a model for a client of a dialect. */
type RunCall = (
  call: Call,
  client: ResponsesClient,
  request: Request,
) => Promise<ModelAnswer | StreamReply | Reply>;

/** Sent by Anthropic's clients. No other part of a query is accepted or passed on. */
const BETA_QUERY = Type.Object(
  { beta: Type.Optional(Type.Boolean({ description: "Passed on to the provider." })) },
  { additionalProperties: false },
);
const NO_QUERY: TObject = Type.Object({}, { additionalProperties: false });

/** The routes of the APIs through which existing clients call models. */
export function dialectRoutes(
  endpoints: EndpointContext,
  { modelCalls, responseCalls, tokenCounts, ...replies }: DialectRouteParts,
) {
  const relayFor =
    ({ caller: { workspaceId }, requestId }: Call, request: Request): Relay =>
    (whole) =>
      endpoints.answers.relay({ workspaceId, requestId, request }, new Blob([whole]).stream());
  const calling =
    (api: DialectApi): RunCall =>
    (call, client) =>
      modelCalls.run(call, requestOf(api, client));
  const formOf = ({ dialect, errorBody }: DialectForm) =>
    clientForm(dialect === "messages" ? "AnthropicError" : "OpenAiError", errorBody);
  const route = (
    api: DialectForm,
    run: RunCall,
    { operationId, ...described }: { operationId: string; summary: string; dialect: DialectBodies },
    query = NO_QUERY,
  ) =>
    endpoint(
      endpoints,
      {
        ...{ action: "model.call", operationId, scope: "models:call", tag: "Model calls" },
        ...described,
        counted: "later",
        raw: true,
        client: formOf(api),
        headers: AGENT_HEADERS,
        query,
        slow: true,
        ...(api.dialect === "embeddings"
          ? {}
          : { streams: "The dialect's own events, with `stream: true`." }),
        status: 200,
      },
      async ({ call, raw, query: { beta }, request }) => {
        if (!raw) throw new Error("the body was not read");
        const { headers, signal } = request;
        const client = { ...raw, headers, query: queryFor(beta), signal };
        const answer = await modelCalls.serve(call, api.dialect, async () => run(call, client, request));
        return "contentType" in answer ? reply(answer, relayFor(call, request)) : answer;
      },
    );
  const chat = route(CHAT, calling(CHAT), {
    operationId: "chat_completions",
    summary: "OpenAI Chat Completions: any model that the caller may use",
    dialect: CHAT_BODIES,
  });
  const messages = route(
    MESSAGES,
    calling(MESSAGES),
    {
      operationId: "messages",
      summary: "Anthropic Messages: any model that the caller may use",
      dialect: MESSAGES_BODIES,
    },
    BETA_QUERY,
  );
  const count = endpoint(
    endpoints,
    {
      ...{ action: "model.count", scope: "models:call", tag: "Model calls" },
      summary: "Count the tokens of a request in Anthropic's format, free of charge",
      raw: true,
      client: formOf(MESSAGES),
      dialect: COUNT_BODIES,
      headers: AGENT_HEADERS,
      query: BETA_QUERY,
      slow: true,
      status: 200,
    },
    async ({ call, raw, query: { beta }, request }) => {
      call.about({ detail: { dialect: MESSAGES.dialect } });
      if (!raw) throw new Error("the body was not read");
      const { headers, signal } = request;
      const client = requestOf(MESSAGES, { ...raw, headers, query: queryFor(beta), signal });
      return countReply(await tokenCounts.run(call, client), relayFor(call, request));
    },
  );
  const createResponse: RunCall = async (call, client, request) => {
    const { background, stream } = isMembers(client.value) ? client.value : {};
    const { workspaceId } = call.caller;
    // Reserved before anything is dispatched, so a refused stream does not leave a response running.
    const place = background === true && stream === true ? replies.streams.take(workspaceId) : null;
    const memory = place && streamMemory(endpoints.bodies, workspaceId, place);
    try {
      const answer = await responseCalls.run(call, { ...client, memory: memory ?? undefined });
      if ("contentType" in answer) return answer;
      const { seq, response, events } = answer;
      const headers = { "gatehouse-ledger": String(seq) };
      if (!place || !memory || !events) return { status: 200, body: response, headers };
      return eventReply(replies, { caller: call.caller, request }, { place, memory }, events, headers);
    } catch (error) {
      memory?.ended();
      throw error;
    }
  };
  const responses = route(RESPONSES, createResponse, {
    operationId: "responses",
    summary: "OpenAI Responses: any model that the caller may use",
    dialect: RESPONSES_BODIES,
  });
  const embeddings = route(EMBEDDINGS, calling(EMBEDDINGS), {
    operationId: "embeddings",
    summary: "OpenAI Embeddings",
    dialect: EMBEDDINGS_BODIES,
  });
  return new Elysia({ prefix: "/v1" })
    .post("/chat/completions", chat.handle, chat.hook)
    .post("/embeddings", embeddings.handle, embeddings.hook)
    .post("/responses", responses.handle, responses.hook)
    .post("/messages", messages.handle, messages.hook)
    .post("/messages/count_tokens", count.handle, count.hook);
}

function requestOf(api: DialectApi, client: ResponsesClient): ClientRequest {
  return { ...client, api, request: api.read(client.bytes, client.value) };
}

function countReply(count: TokenCount, relay: Relay): StreamReply | Reply {
  if ("answer" in count) return reply(count.answer, relay);
  const headers = { "gatehouse-usage": "estimated" };
  return { status: 200, body: { input_tokens: count.estimated }, headers };
}

/** The part of a client's query that is passed on. */
function queryFor(beta: unknown): string {
  return beta === true ? "?beta=true" : "";
}

/** Sends a long answer as its client reads it. */
type Relay = (whole: Uint8Array<ArrayBuffer>) => ReadableStream<Uint8Array>;

/** Longer answers count against the memory for long answers until their client has read them. */
const SHORT_ANSWER = 64 * 1024;

function reply({ contentType, model, intent, body }: ModelAnswer, relay: Relay): StreamReply {
  const isShort = body instanceof ReadableStream || body.length <= SHORT_ANSWER;
  return {
    stream: (headers) =>
      new Response(isShort ? body : relay(body), {
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
