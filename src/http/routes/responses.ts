import { Elysia } from "elysia";
import Type from "typebox";
import { AGENT_HEADERS } from "../../dialects/calling-agent.ts";
import { openAiError } from "../../dialects/openai-errors.ts";
import { requireIncluded } from "../../dialects/responses/stored/check-include.ts";
import type { StoredResponses } from "../../dialects/responses/stored/service.ts";
import type { HoldMemory } from "../../dialects/responses/stored/text-reading.ts";
import { unsupported } from "../../dialects/translation/unsupported.ts";
import type { Call } from "../../gate/call.ts";
import { clientForm } from "../answer/client-errors.ts";
import { RESPONSE_DELETED, RESPONSE_ITEMS, RESPONSES_BODIES } from "../docs/dialect-bodies.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { type EventReplyParts, eventReply } from "../streams/event-reply.ts";
import { streamMemory } from "../streams/stream-memory.ts";

export interface ResponseRouteParts extends EventReplyParts {
  readonly storedResponses: StoredResponses;
}

const Include = Type.Optional(
  Type.Array(Type.String({ maxLength: 128 }), {
    maxItems: 16,
    description:
      "Parts that the items must have. Only parts that were stored with the response can be included.",
  }),
);
/** OpenAI's clients add brackets to a list's name. */
const INCLUDE = { include: Include, "include[]": Include };

const READ_QUERY = Type.Object(
  {
    ...INCLUDE,
    stream: Type.Optional(
      Type.Boolean({
        description: "Return the events of a background response that was requested as a stream.",
      }),
    ),
    starting_after: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: "With `stream`: only events with a higher `sequence_number`, for resuming a stream.",
      }),
    ),
  },
  { additionalProperties: false },
);
/** Streams do not count as requests. */
const STREAM_PARAMETER = /[?&]stream=true(?:&|$)/;
const ITEMS_QUERY = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: "Default 20." })),
    after: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    order: Type.Optional(Type.Enum(["asc", "desc"], { description: "Default desc." })),
    ...INCLUDE,
  },
  { additionalProperties: false },
);

/** Stored responses, in OpenAI's format. */
export function responseRoutes(
  endpoints: EndpointContext,
  { storedResponses, ...replies }: ResponseRouteParts,
) {
  const shared = {
    scope: "models:call" as const,
    tag: "Model calls",
    client: clientForm("OpenAiError", openAiError),
    headers: AGENT_HEADERS,
    status: 200,
  };
  /** Counts text that is read as memory of the workspace, like bodies, until the answer is ready. */
  async function counted<Body>(call: Call, read: (hold: HoldMemory) => Promise<Body>): Promise<Body> {
    const texts = endpoints.bodies.open(call.caller.workspaceId);
    texts.complete();
    try {
      return await read((bytes) => texts.take(bytes));
    } finally {
      texts.close();
    }
  }
  const read = endpoint(
    endpoints,
    {
      ...{ ...shared, dialect: { answer: RESPONSES_BODIES.answer }, query: READ_QUERY },
      ...{ action: "response.read", summary: "Read a stored response" },
      counted: (request) => !STREAM_PARAMETER.test(request.url),
      streams: "The events of a background response, with `stream=true`.",
    },
    async ({ call, params: { id = "" }, query: { stream, starting_after: after, ...query }, request }) => {
      if (!stream) {
        if (after !== undefined) throw unsupported("starting_after", "has an effect only with stream=true.");
        const { headers } = request;
        const body = await counted(call, (hold) => storedResponses.get(call, { headers, hold }, id));
        requireIncluded(included(query), "output" in body ? body.output : undefined);
        return { status: 200, body };
      }
      const { workspaceId } = call.caller;
      const place = replies.streams.take(workspaceId);
      const memory = streamMemory(endpoints.bodies, workspaceId, place);
      try {
        const { headers } = request;
        const events = await counted(call, (hold) =>
          storedResponses.events(call, { headers, hold, memory }, id, after),
        );
        return eventReply(replies, { caller: call.caller, request }, { place, memory }, events);
      } catch (error) {
        memory.ended();
        throw error;
      }
    },
  );
  const items = endpoint(
    endpoints,
    {
      ...shared,
      ...{ action: "response.read", operationId: "response_input_items", query: ITEMS_QUERY },
      dialect: RESPONSE_ITEMS,
      summary: "List the items that a response answers, with the conversation before it",
    },
    async ({ call, params: { id = "" }, query, request: { headers } }) => {
      const { limit = 20, after, order = "desc" } = query;
      const body = await counted(call, (hold) =>
        storedResponses.inputItems(call, { headers, hold }, id, { limit, after, order }),
      );
      requireIncluded(included(query), body.data);
      return { status: 200, body };
    },
  );
  const remove = endpoint(
    endpoints,
    {
      ...shared,
      action: "response.delete",
      dialect: RESPONSE_DELETED,
      summary:
        "Delete a response. Its texts are erased as well if the token does not act as an agent and has `settings:write`; " +
        "the entry is then `payload.erase`",
      slow: true,
    },
    async ({ call, params: { id = "" }, request }) => {
      await storedResponses.delete(call, request.headers, id);
      return { status: 200, body: { id, object: "response", deleted: true } };
    },
  );
  const cancel = endpoint(
    endpoints,
    {
      ...shared,
      ...{
        action: "response.cancel",
        summary: "Cancel a background response; a response that has ended stays as it is",
      },
      urgent: true,
      dialect: { answer: RESPONSES_BODIES.answer },
      bodyOptional: true,
      body: Type.Object({}, { additionalProperties: false }),
    },
    async ({ call, params: { id = "" }, request: { headers } }) => ({
      status: 200,
      body: await counted(call, (hold) => storedResponses.cancel(call, { headers, hold }, id)),
    }),
  );
  return new Elysia({ prefix: "/v1/responses" })
    .get("/:id", read.handle, read.hook)
    .delete("/:id", remove.handle, remove.hook)
    .get("/:id/input_items", items.handle, items.hook)
    .post("/:id/cancel", cancel.handle, cancel.hook);
}

type IncludeQuery = { readonly [Name in keyof typeof INCLUDE]?: readonly string[] | undefined };

function included({ include = [], "include[]": bracketed = [] }: IncludeQuery): readonly string[] {
  return [...include, ...bracketed];
}
