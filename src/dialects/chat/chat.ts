import type { DialectApi } from "../dialect.ts";
import { field, parsedOrNothing } from "../json.ts";
import { openAiError, openAiErrorEvent } from "../openai-errors.ts";
import { readChatRequest } from "./request.ts";
import { chatUsage } from "./usage.ts";

/** OpenAI's Chat Completions. */
export const CHAT: DialectApi = {
  dialect: "chat_completions",
  read: readChatRequest,
  usageOf: (answer) => chatUsage(field(parsedOrNothing(answer), "usage")),
  passedHeaders: () => ({}),
  errorBody: openAiError,
  errorEvent: openAiErrorEvent,
};
