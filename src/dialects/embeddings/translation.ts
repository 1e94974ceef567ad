import { field } from "../json.ts";
import { invalidAt, listAt, objectAt, optional } from "../translation/fields.ts";
import type { VectorTranslation } from "../translation/translation.ts";
import { refuseUnknown, unsupported } from "../translation/unsupported.ts";
import type { Vectors } from "../translation/vectors.ts";
import { toBase64 } from "./vectors.ts";

const KNOWN = new Set(["model", "input", "encoding_format", "dimensions"]);
/** The same maximum as OpenAI's. */
const MOST_INPUTS = 2_048;

/** Embeddings for models whose providers speak another dialect. */
export const EMBEDDINGS_TRANSLATION: VectorTranslation = {
  options(value) {
    const request = objectAt(value, "");
    refuseUnknown(request, KNOWN);
    const dimensions = optional(request.dimensions, "dimensions", readDimensions);
    return { values: readInput(request.input), ...(dimensions === undefined ? {} : { dimensions }) };
  },
  answer: writeVectors,
};

function readDimensions(value: unknown, path: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value;
  throw invalidAt(path, "must be a whole number above 0");
}

function readInput(input: unknown): readonly string[] {
  if (typeof input === "string") return [input];
  const inputs = listAt(input, "input");
  if (inputs.length === 0 || inputs.length > MOST_INPUTS) {
    throw invalidAt("input", `must have 1 to ${MOST_INPUTS} texts`);
  }
  return inputs.map((each, index) => {
    if (typeof each === "string") return each;
    throw unsupported(
      `input[${index}]`,
      "must be a string for this model's provider: token ids mean nothing to it.",
    );
  });
}

/** The parts of the body. */
function* writeVectors(
  request: unknown,
  { vectors, tokens }: Vectors,
  model: string,
): Generator<string, void> {
  const isBase64 = field(request, "encoding_format") === "base64";
  yield `{"object":"list","model":${JSON.stringify(model)},"data":[`;
  for (const [index, vector] of vectors.entries()) {
    const embedding = JSON.stringify(isBase64 ? toBase64(vector) : vector);
    yield `${index === 0 ? "" : ","}{"object":"embedding","index":${index},"embedding":${embedding}}`;
  }
  // Clients expect a count. If the provider reported none, it is estimated only for the ledger.
  const counted = tokens ?? 0;
  yield `],"usage":{"prompt_tokens":${counted},"total_tokens":${counted}}}`;
}
