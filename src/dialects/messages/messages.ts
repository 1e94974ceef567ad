import { anthropicError } from "../anthropic-errors.ts";
import type { DialectApi } from "../dialect.ts";
import { field, isErrorAnswer, parsedOrNothing } from "../json.ts";
import { readMessagesRequest } from "./request.ts";
import { messageTextBytes } from "./text-bytes.ts";
import { MESSAGES_TRANSLATION } from "./translation/translation.ts";
import { messagesUsage } from "./usage.ts";

/** Sent unless the client names a version. Without one, Anthropic refuses every request. */
const DEFAULT_VERSION = "2023-06-01";

/** Anthropic's Messages. */
export const MESSAGES: DialectApi = {
  dialect: "messages",
  answersInTokens: true,
  translation: MESSAGES_TRANSLATION,
  read: readMessagesRequest,
  summarize(answer) {
    const value = parsedOrNothing(answer);
    const textBytes = value === undefined ? undefined : messageTextBytes(field(value, "content"));
    return { isError: isErrorAnswer(value), reported: messagesUsage(field(value, "usage")), textBytes };
  },
  passedHeaders(headers) {
    const beta = headers.get("anthropic-beta");
    return {
      "anthropic-version": headers.get("anthropic-version") ?? DEFAULT_VERSION,
      ...(beta === null ? {} : { "anthropic-beta": beta }),
    };
  },
  errorBody: anthropicError,
  // No `message_stop` follows, so the answer is not mistaken for a complete one.
  errorEvent: (problem, requestId) =>
    `event: error\ndata: ${JSON.stringify(anthropicError(problem, requestId))}\n\n`,
};
