import { field } from "../../json.ts";
import { strictFormatAt } from "../../translation/strict-answer.ts";
import type { Translation } from "../../translation/translation.ts";
import { CHAT_PATHS, readOptions } from "./read-request.ts";
import { writeCompletion } from "./write-answer.ts";
import { ChunkWriter } from "./write-stream.ts";

/** Chat completions for models whose providers speak another dialect. */
export const CHAT_TRANSLATION: Translation = {
  paths: { ...CHAT_PATHS, strict: "tools.function.strict" },
  options: readOptions,
  strictFormat: (value) =>
    strictFormatAt(field(field(value, "response_format"), "json_schema"), "response_format.json_schema"),
  writer(value, target, head) {
    const wantsUsage = field(field(value, "stream_options"), "include_usage") === true;
    const chunks = new ChunkWriter(target, head, wantsUsage);
    return {
      whole: (result) => writeCompletion(result, target, head),
      part: (part) => chunks.part(part),
    };
  },
};
