import { Elysia } from "elysia";
import Type from "typebox";
import { Problem } from "../../base/errors.ts";
import { AGENT_HEADERS } from "../../dialects/calling-agent.ts";
import { openAiError } from "../../dialects/openai-errors.ts";
import type { StoredResponses } from "../../dialects/responses/stored/service.ts";
import { clientForm } from "../answer/client-errors.ts";
import { RESPONSE_DELETED, RESPONSE_ITEMS, RESPONSES_BODIES } from "../docs/dialect-bodies.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";

export interface ResponseRouteParts {
  readonly storedResponses: StoredResponses;
}

const READ_QUERY = Type.Object(
  { stream: Type.Optional(Type.Boolean({ description: "Only false: the response has ended." })) },
  { additionalProperties: false },
);
const ITEMS_QUERY = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: "Default 20." })),
    after: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    order: Type.Optional(Type.Enum(["asc", "desc"], { description: "Default desc." })),
  },
  { additionalProperties: false },
);

/** Stored responses, in OpenAI's form. */
export function responseRoutes(endpoints: EndpointContext, { storedResponses }: ResponseRouteParts) {
  const shared = {
    scope: "models:call" as const,
    tag: "Model calls",
    client: clientForm("OpenAiError", openAiError),
    headers: AGENT_HEADERS,
    status: 200,
  };
  const read = endpoint(
    endpoints,
    {
      ...{ ...shared, dialect: { answer: RESPONSES_BODIES.answer }, query: READ_QUERY },
      ...{ action: "response.read", summary: "Read a response that is kept" },
    },
    async ({ call, params: { id = "" }, query: { stream }, request }) => {
      const body = await storedResponses.get(call, request.headers, id);
      if (stream) {
        const message = "is possible only for a response that was made in the background";
        const errors = [{ path: "/stream", message }];
        throw new Problem("unsupported_parameter", `stream ${message}.`, { errors });
      }
      return { status: 200, body };
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
    async ({ call, params: { id = "" }, query: { limit = 20, after, order = "desc" }, request }) => ({
      status: 200,
      body: await storedResponses.inputItems(call, request.headers, id, { limit, after, order }),
    }),
  );
  const remove = endpoint(
    endpoints,
    {
      ...shared,
      action: "response.delete",
      dialect: RESPONSE_DELETED,
      summary:
        "Delete a response. Its texts are erased as well if the token acts as no agent and has `settings:write`; " +
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
      ...{ action: "response.cancel", summary: "Refused: no response is made in the background" },
      bodyOptional: true,
      body: Type.Object({}, { additionalProperties: false }),
    },
    async ({ call, params: { id = "" }, request }) => storedResponses.cancel(call, request.headers, id),
  );
  return new Elysia({ prefix: "/v1/responses" })
    .get("/:id", read.handle, read.hook)
    .delete("/:id", remove.handle, remove.hook)
    .get("/:id/input_items", items.handle, items.hook)
    .post("/:id/cancel", cancel.handle, cancel.hook);
}
