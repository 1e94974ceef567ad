import type { DialectApi } from "../dialect.ts";
import { field, isErrorAnswer, parsedOrNothing } from "../json.ts";
import { openAiError } from "../openai-errors.ts";
import { failureEvents } from "./errors.ts";
import { responseTextBytes } from "./text-bytes.ts";
import { RESPONSES_TRANSLATION } from "./translation/translation.ts";
import { responsesUsage } from "./usage.ts";

/** OpenAI's Responses, except for reading requests: their references are resolved first. */
export const RESPONSES: Omit<DialectApi, "read"> = {
  dialect: "responses",
  answersInTokens: true,
  translation: RESPONSES_TRANSLATION,
  summarize(answer) {
    const value = parsedOrNothing(answer);
    const textBytes = value === undefined ? undefined : responseTextBytes(field(value, "output"));
    return { isError: isErrorAnswer(value), reported: responsesUsage(field(value, "usage")), textBytes };
  },
  passedHeaders: () => ({}),
  errorBody: openAiError,
  errorEvent: (problem, requestId) => failureEvents(problem, { requestId, sequence: 0, received: {} }),
};
