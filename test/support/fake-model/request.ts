export interface ChatMessage {
  readonly role: string;
  /** Text or parts; null in an assistant's message that only calls tools. */
  readonly content?: unknown;
  readonly [key: string]: unknown;
}

/** The body of `POST /v1/chat/completions`: the fields that the fake reads, and everything else as received. */
export interface ChatRequestBody {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly tools?: readonly unknown[];
  readonly [key: string]: unknown;
}

/** The body, or what is wrong with it. */
export function parseChatRequest(text: string): ChatRequestBody | string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return "We could not parse the JSON body of your request.";
  }
  return isChatRequest(body) ? body : "The body needs a `model` and `messages`, each with a `role`.";
}

function isChatRequest(body: unknown): body is ChatRequestBody {
  if (!isRecord(body) || typeof body.model !== "string" || !Array.isArray(body.messages)) return false;
  if (body.stream_options !== undefined && !isRecord(body.stream_options)) return false;
  return body.messages.every((message) => isRecord(message) && typeof message.role === "string");
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text of the user's last message; empty if there is none. */
export function lastUserText(body: ChatRequestBody): string {
  const message = body.messages.findLast((candidate) => candidate.role === "user");
  if (typeof message?.content === "string") return message.content;
  if (!Array.isArray(message?.content)) return "";
  return message.content
    .map((part: unknown) => (isRecord(part) && typeof part.text === "string" ? part.text : ""))
    .join("");
}
