import { type JSONObject, JSONParseError, TypeValidationError } from "@ai-sdk/provider";
import { secureJsonParse } from "@ai-sdk/provider-utils";
import { type Static, type TSchema, Type } from "typebox";
import { validator } from "../../../base/schema.ts";

/** Servers send `null` for what they do not have, or leave it out. */
function nullish<const Schema extends TSchema>(schema: Schema) {
  return Type.Optional(Type.Union([schema, Type.Null()]));
}

const text = nullish(Type.String());
const count = nullish(Type.Number());

const toolCall = Type.Object({
  /** Missing in Google's answers. */
  index: count,
  id: text,
  function: Type.Object({ name: text, arguments: text }),
  /** Google's signatures. */
  extra_content: nullish(Type.Object({ google: nullish(Type.Object({ thought_signature: text })) })),
});

const contentPart = Type.Object({
  type: Type.String(),
  text: Type.Optional(Type.Unknown()),
  thinking: Type.Optional(Type.Unknown()),
});

const delta = Type.Object({
  role: nullish(Type.Union([Type.Literal("assistant"), Type.Literal("")])),
  content: nullish(Type.Union([Type.String(), Type.Array(contentPart)])),
  /** Some servers send `false`. */
  refusal: Type.Optional(Type.Unknown()),
  /** Servers use either name. */
  reasoning_content: text,
  reasoning: text,
  tool_calls: nullish(Type.Array(toolCall)),
});

const usage = Type.Object({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: nullish(Type.Object({ cached_tokens: count })),
  completion_tokens_details: nullish(
    Type.Object({
      reasoning_tokens: count,
      accepted_prediction_tokens: count,
      rejected_prediction_tokens: count,
    }),
  ),
});

const answerChunk = validator(
  Type.Object({
    id: text,
    created: count,
    model: text,
    choices: Type.Array(Type.Object({ delta: nullish(delta), finish_reason: text })),
    usage: nullish(usage),
    error: Type.Optional(Type.Unknown()),
  }),
);

const errorChunk = validator(
  Type.Object({
    error: Type.Object({
      message: Type.String(),
      type: text,
      param: Type.Optional(Type.Unknown()),
      code: nullish(Type.Union([Type.String(), Type.Number()])),
    }),
  }),
);

export type AnswerChunk = Static<typeof answerChunk.schema>;
export type ToolCallDelta = Static<typeof toolCall>;
export type ContentPart = Static<typeof contentPart>;
/** All of the object is passed on as `usage.raw`. */
export type ChunkUsage = Static<typeof usage> & JSONObject;
export type ProviderError = Static<typeof errorChunk.schema>;

/** One event of a stream: a part of the answer, an error reported by the server, or an event that cannot be read. */
export type ReadChunk =
  | { readonly kind: "answer"; readonly chunk: AnswerChunk; readonly raw: unknown }
  | { readonly kind: "error"; readonly error: unknown; readonly raw: unknown };

/** Reads the data of one event. Accepts what the schema of `@ai-sdk/openai-compatible` accepts. */
export function readChunk(data: string): ReadChunk {
  let raw: unknown;
  try {
    raw = secureJsonParse(data);
  } catch (cause) {
    return { kind: "error", error: new JSONParseError({ text: data, cause }), raw: undefined };
  }
  if (answerChunk.is(raw)) {
    return "error" in raw ? { kind: "error", error: raw.error, raw } : { kind: "answer", chunk: raw, raw };
  }
  const reported = readError(raw);
  if (reported) return { kind: "error", error: reported.error, raw };
  const [refused] = answerChunk.errors(raw);
  const cause = new Error(`${refused?.path || "chunk"}: ${refused?.message ?? "not valid"}`);
  return { kind: "error", error: TypeValidationError.wrap({ value: raw, cause }), raw };
}

/** The error that the body of a response or an event reports, without members of other names. */
export function readError(value: unknown): ProviderError | undefined {
  if (!errorChunk.is(value)) return undefined;
  const names = ["message", "type", "param", "code"];
  const known = Object.entries(value.error).filter(([name]) => names.includes(name));
  return { error: { message: value.error.message, ...Object.fromEntries(known) } };
}
