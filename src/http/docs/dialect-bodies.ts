import Type, { type TObject, type TSchema } from "typebox";

/* The bodies of the APIs that existing clients know, with the fields that a reader needs. The vendors' own
   documentation lists every field. Requests may have other fields, which are passed on to providers that support
   the API. */

const ANY = Type.Unknown();
const TEXT = Type.String();
const COUNT = Type.Integer({ minimum: 0 });
const OPEN = { additionalProperties: true } as const;
const optional = Type.Optional;
const list = (description: string, items: TSchema = Type.Object({}, OPEN)) =>
  Type.Array(items, { description });

const MODEL = Type.String({
  minLength: 1,
  description: "A model (`provider/model`), a tier (`tier:2` or its name) or an alias: see `GET /v1/models`.",
});
const STREAM = optional(
  Type.Union([Type.Boolean(), Type.Null()], { description: "Answers with the dialect's events." }),
);
const TOOLS = optional(list("The client's tools, which the client runs."));
const TOOL_CHOICE = optional(ANY);
const SAMPLING = {
  temperature: optional(Type.Union([Type.Number(), Type.Null()])),
  top_p: optional(Type.Union([Type.Number(), Type.Null()])),
};
const MESSAGE = Type.Object({ role: TEXT, content: optional(ANY) }, OPEN);
const TEXT_OR_LIST = Type.Union([TEXT, Type.Array(ANY)]);

function request(description: string, fields: Readonly<Record<string, TSchema>>): TObject {
  return Type.Object({ model: MODEL, ...fields }, { ...OPEN, description });
}

/** A request for a model and its whole answer. */
export interface DialectBodies {
  readonly request: TObject;
  readonly answer: TObject;
}
/** An answer to a request without a body. */
export type DialectAnswerBody = Pick<DialectBodies, "answer">;

export const CHAT_BODIES: DialectBodies = {
  request: request("A chat completion request, as in OpenAI's API.", {
    messages: list("The conversation so far.", MESSAGE),
    stream: STREAM,
    stream_options: optional(Type.Union([Type.Object({}, OPEN), Type.Null()])),
    max_completion_tokens: optional(Type.Union([COUNT, Type.Null()])),
    max_tokens: optional(Type.Union([COUNT, Type.Null()])),
    ...SAMPLING,
    stop: optional(ANY),
    tools: TOOLS,
    tool_choice: TOOL_CHOICE,
    response_format: optional(Type.Object({ type: TEXT }, OPEN)),
    reasoning_effort: optional(Type.Union([TEXT, Type.Null()])),
  }),
  answer: Type.Object(
    {
      id: TEXT,
      object: Type.Literal("chat.completion"),
      created: Type.Integer(),
      model: TEXT,
      choices: list("One for each requested answer.", Type.Object({ index: COUNT, message: MESSAGE }, OPEN)),
      usage: optional(Type.Object({ prompt_tokens: COUNT, completion_tokens: COUNT }, OPEN)),
    },
    OPEN,
  ),
};

export const RESPONSES_BODIES: DialectBodies = {
  request: request("A request for a response, as in OpenAI's API.", {
    input: optional({ ...TEXT_OR_LIST, description: "A prompt, or the items of the conversation so far." }),
    instructions: optional(Type.Union([TEXT, Type.Null()])),
    stream: STREAM,
    store: optional(Type.Union([Type.Boolean(), Type.Null()])),
    background: optional(
      Type.Union([Type.Boolean(), Type.Null()], {
        description: "Return at once, and make the response afterwards.",
      }),
    ),
    previous_response_id: optional(Type.Union([TEXT, Type.Null()])),
    max_output_tokens: optional(Type.Union([COUNT, Type.Null()])),
    ...SAMPLING,
    tools: TOOLS,
    tool_choice: TOOL_CHOICE,
    text: optional(Type.Object({}, OPEN)),
    reasoning: optional(Type.Union([Type.Object({}, OPEN), Type.Null()])),
    include: optional(Type.Union([Type.Array(TEXT), Type.Null()])),
  }),
  answer: Type.Object(
    {
      id: TEXT,
      object: Type.Literal("response"),
      created_at: Type.Number(),
      model: TEXT,
      status: optional(TEXT),
      output: list("Messages, reasoning and calls to the client's tools."),
      usage: optional(
        Type.Union([Type.Object({ input_tokens: COUNT, output_tokens: COUNT }, OPEN), Type.Null()]),
      ),
    },
    OPEN,
  ),
};

export const RESPONSE_ITEMS: DialectAnswerBody = {
  answer: Type.Object(
    { object: Type.Literal("list"), data: list("The items."), has_more: Type.Boolean() },
    OPEN,
  ),
};

export const RESPONSE_DELETED: DialectAnswerBody = {
  answer: Type.Object({ id: TEXT, object: Type.Literal("response"), deleted: Type.Literal(true) }, OPEN),
};

const PROMPT = {
  messages: list("The conversation so far.", MESSAGE),
  system: optional(TEXT_OR_LIST),
  tools: TOOLS,
  tool_choice: TOOL_CHOICE,
  thinking: optional(Type.Object({ type: TEXT }, OPEN)),
};

export const MESSAGES_BODIES: DialectBodies = {
  request: request("A request for a message, as in Anthropic's API.", {
    ...PROMPT,
    max_tokens: Type.Integer({ minimum: 1 }),
    stream: STREAM,
    ...SAMPLING,
    top_k: optional(COUNT),
    stop_sequences: optional(Type.Array(TEXT)),
    output_config: optional(Type.Object({}, OPEN)),
    metadata: optional(Type.Object({}, OPEN)),
  }),
  answer: Type.Object(
    {
      id: TEXT,
      type: Type.Literal("message"),
      role: Type.Literal("assistant"),
      model: TEXT,
      content: list("Text, thinking and uses of the client's tools."),
      stop_reason: Type.Union([TEXT, Type.Null()]),
      usage: Type.Object({ input_tokens: COUNT, output_tokens: COUNT }, OPEN),
    },
    OPEN,
  ),
};

export const COUNT_BODIES: DialectBodies = {
  request: request("A message whose tokens are counted.", PROMPT),
  answer: Type.Object({ input_tokens: COUNT }, OPEN),
};

export const EMBEDDINGS_BODIES: DialectBodies = {
  request: request("Texts to embed, as in OpenAI's API.", {
    input: { ...TEXT_OR_LIST, description: "A string, a list of strings, or their tokens." },
    encoding_format: optional(Type.Union([Type.Literal("float"), Type.Literal("base64")])),
    dimensions: optional(Type.Integer({ minimum: 1 })),
    user: optional(TEXT),
  }),
  answer: Type.Object(
    {
      object: Type.Literal("list"),
      model: TEXT,
      data: list(
        "One vector for each text.",
        Type.Object(
          {
            object: Type.Literal("embedding"),
            index: COUNT,
            embedding: Type.Union([Type.Array(Type.Number()), TEXT]),
          },
          OPEN,
        ),
      ),
      usage: optional(Type.Object({ prompt_tokens: COUNT }, OPEN)),
    },
    OPEN,
  ),
};
