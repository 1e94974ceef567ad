import type { DialectApi } from "../dialect.ts";
import { field, isErrorAnswer, parsedOrNothing } from "../json.ts";
import { openAiError, openAiErrorEvent } from "../openai-errors.ts";
import { readChatRequest } from "./request.ts";
import { chatTextBytes } from "./text-bytes.ts";
import { CHAT_TRANSLATION } from "./translation/translation.ts";
import { chatUsage } from "./usage.ts";

/** OpenAI's Chat Completions. */
export const CHAT: DialectApi = {
  dialect: "chat_completions",
  answersInTokens: true,
  translation: CHAT_TRANSLATION,
  read: readChatRequest,
  summarize(answer) {
    const value = parsedOrNothing(answer);
    const textBytes = value === undefined ? undefined : chatTextBytes(value);
    return { isError: isErrorAnswer(value), reported: chatUsage(field(value, "usage")), textBytes };
  },
  passedHeaders: () => ({}),
  errorBody: openAiError,
  errorEvent: openAiErrorEvent,
};
