import { field } from "../../json.ts";
import { unsupported } from "../../translation/unsupported.ts";

/**
 * What a client may include, each with a test of whether an item lacks it. A response is returned as it was stored:
 * it has what its request included, and nothing can be added later.
 */
const LACKS: Readonly<Record<string, (item: unknown) => boolean>> = {
  // Inputs are stored as they were sent.
  "message.input_image.image_url": () => false,
  "computer_call_output.output.image_url": () => false,
  "message.output_text.logprobs": (item) => textsOf(item).some((text) => !isFilled(field(text, "logprobs"))),
  "file_search_call.results": (item) => (field(item, "results") ?? null) === null,
  "web_search_call.results": (item) => (field(item, "results") ?? null) === null,
  "web_search_call.action.sources": (item) => (field(field(item, "action"), "sources") ?? null) === null,
  "code_interpreter_call.outputs": (item) => (field(item, "outputs") ?? null) === null,
  "reasoning.encrypted_content": (item) => (field(item, "encrypted_content") ?? null) === null,
};

/**
 * @param items of the answer
 * @throws Problem 400 `unsupported_parameter` naming what the items lack
 */
export function requireIncluded(include: readonly string[], items: unknown): void {
  for (const [index, name] of include.entries()) {
    const path = `include[${index}]`;
    const lacks = Object.hasOwn(LACKS, name) ? LACKS[name] : undefined;
    const shown = JSON.stringify(name.slice(0, 64));
    if (!lacks) throw unsupported(path, `is ${shown}, which is not known.`);
    const type = name.slice(0, name.indexOf("."));
    const isLacking =
      Array.isArray(items) && items.some((item) => field(item, "type") === type && lacks(item));
    if (isLacking) {
      throw unsupported(
        path,
        `is ${shown}, which was not stored. Include it in the request that makes the response.`,
      );
    }
  }
}

function textsOf(item: unknown): readonly unknown[] {
  const content = field(item, "content");
  return Array.isArray(content) ? content.filter((part) => field(part, "type") === "output_text") : [];
}

function isFilled(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}
