import { field } from "../../json.ts";
import { strictFormatAt } from "../../translation/strict-answer.ts";
import type { Translation } from "../../translation/translation.ts";
import { RESPONSES_PATHS, readOptions } from "./read-request.ts";
import { responseForm } from "./response-form.ts";
import { namespacedTools } from "./tool-names.ts";
import { ResponseWriter } from "./write-response.ts";

/** Responses for models whose providers speak another dialect. */
export const RESPONSES_TRANSLATION: Translation = {
  paths: RESPONSES_PATHS,
  options: readOptions,
  strictFormat: (value) => strictFormatAt(field(field(value, "text"), "format"), "text.format"),
  writer(value, target, head) {
    const form = responseForm(value, head);
    const writer = new ResponseWriter({ target, head, form, namespaced: namespacedTools(value) });
    return {
      whole: (result) => writer.whole(result),
      part: (part) => writer.part(part),
    };
  },
};
