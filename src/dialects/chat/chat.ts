import type { DialectApi } from "../dialect.ts";
import { field } from "../json.ts";
import { openAiError, openAiErrorEvent } from "../openai-errors.ts";
import { readChatRequest } from "./request.ts";
import { chatTextBytes } from "./text-bytes.ts";
import { chatUsage } from "./usage.ts";

/** OpenAI's Chat Completions. */
export const CHAT: DialectApi = {
  dialect: "chat_completions",
  read: readChatRequest,
  usageOf: (answer) => chatUsage(field(answer, "usage")),
  textBytesOf: chatTextBytes,
  passedHeaders: () => ({}),
  errorBody: openAiError,
  errorEvent: openAiErrorEvent,
};
