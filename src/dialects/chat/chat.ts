import type { DialectApi } from "../dialect.ts";
import { field, parsedOrNothing } from "../json.ts";
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
  usageOf(answer) {
    const value = parsedOrNothing(answer);
    const textBytes = value === undefined ? undefined : chatTextBytes(value);
    return { reported: chatUsage(field(value, "usage")), textBytes };
  },
  passedHeaders: () => ({}),
  errorBody: openAiError,
  errorEvent: openAiErrorEvent,
};
