import type { LanguageModelV4CallOptions, LanguageModelV4FinishReason } from "@ai-sdk/provider";
import type { JsonSchema, JsonValue } from "../../agents/index.ts";
import { Problem } from "../../base/errors.ts";
import { exactCheck, type ValueCheck } from "../../connectors/arguments/check.ts";
import { field, parsedOrNothing } from "../json.ts";
import { objectAt } from "./fields.ts";
import type { AnswerWriter, TranslationTarget } from "./translation.ts";
import { unsupported } from "./unsupported.ts";

/** A format with a schema that the answer must match exactly (`strict`). */
export interface StrictFormat {
  readonly schema: JsonSchema;
  /** Where it is in the request. */
  readonly path: string;
}

/** Undefined unless the format at this path has `strict`. */
export function strictFormatAt(format: unknown, path: string): StrictFormat | undefined {
  if (field(format, "strict") !== true) return undefined;
  return { schema: objectAt(field(format, "schema"), `${path}.schema`) as JsonSchema, path };
}

/** The only kind that the AI SDK can ask to be strict. By default, it would ask for every schema. */
const STRICT_KIND = "openai-compatible";

/** The call with `strict` as the client chose it, if the provider's API has a field for it. */
export function withStrictness(
  options: LanguageModelV4CallOptions,
  { kind }: Pick<TranslationTarget, "kind">,
  strict: StrictFormat | undefined,
): LanguageModelV4CallOptions {
  if (kind !== STRICT_KIND || options.responseFormat?.type !== "json") return options;
  const { providerOptions = {} } = options;
  const openaiCompatible = { ...providerOptions.openaiCompatible, strictJsonSchema: strict !== undefined };
  return { ...options, providerOptions: { ...providerOptions, openaiCompatible } };
}

/**
 * Returns a check for answers of providers that cannot be asked to be strict. Undefined if there is nothing to check.
 * @throws Problem 400 `unsupported_parameter` if the schema cannot be checked
 */
export function strictCheck(
  { kind }: Pick<TranslationTarget, "kind">,
  strict: StrictFormat | undefined,
): ValueCheck | undefined {
  if (!strict || kind === STRICT_KIND) return undefined;
  const check = exactCheck(strict.schema);
  if (check) return check;
  throw unsupported(
    `${strict.path}.strict`,
    "cannot be guaranteed for this model's provider: the schema has parts, such as patterns, that Gatehouse does not check.",
  );
}

/** Endings without complete text. */
const INCOMPLETE: ReadonlySet<LanguageModelV4FinishReason["unified"]> = new Set([
  ...(["length", "content-filter", "tool-calls"] as const),
]);

/** Writes like `inner`, and fails with Problem 502 `provider_failed` at the end of text that does not match. */
export function strictWriter(inner: AnswerWriter, check: ValueCheck): AnswerWriter {
  const texts: string[] = [];
  let calls = false;
  const requireMatch = ({ unified }: LanguageModelV4FinishReason) => {
    if (calls || INCOMPLETE.has(unified)) return;
    const value = parsedOrNothing(texts.join("")) as JsonValue | undefined;
    const [error] = value === undefined ? [{ path: "", message: "is not JSON" }] : check(value);
    if (!error) return;
    const where = error.path === "" ? "it" : error.path;
    throw new Problem(
      "provider_failed",
      `The model's answer does not match the schema: ${where} ${error.message}.`,
    );
  };
  return {
    whole(result) {
      for (const part of result.content) {
        if (part.type === "text") texts.push(part.text);
        else if (part.type === "tool-call") calls = true;
      }
      requireMatch(result.finishReason);
      return inner.whole(result);
    },
    part(part) {
      if (part.type === "text-delta") texts.push(part.delta);
      else if (part.type === "tool-call") calls = true;
      else if (part.type === "finish") requireMatch(part.finishReason);
      return inner.part(part);
    },
  };
}
