/** The components of the document that describe errors. `Problem` is the default. */
export type ErrorForm = "Problem" | "OpenAiError" | "AnthropicError" | "ClientError";

const TEXT = { type: "string" } as const;
const CODE_HEADER = {
  "Gatehouse-Code": { description: "The problem's `code`, for every form of error.", schema: TEXT },
};

const PROBLEM = {
  type: "object",
  required: ["type", "title", "status", "detail", "code", "request_id"],
  properties: {
    type: TEXT,
    title: TEXT,
    status: { type: "integer" },
    detail: TEXT,
    code: TEXT,
    request_id: TEXT,
    errors: {
      type: "array",
      items: { type: "object", properties: { path: TEXT, message: TEXT } },
    },
  },
};

const OPENAI = {
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["message", "type", "param", "code"],
      properties: {
        message: TEXT,
        type: TEXT,
        param: { type: ["string", "null"], description: "The field that is wrong." },
        code: { ...TEXT, description: "The problem's `code`." },
      },
    },
  },
};

const ANTHROPIC = {
  type: "object",
  required: ["type", "error", "request_id"],
  properties: {
    type: { const: "error" },
    error: { type: "object", required: ["type", "message"], properties: { type: TEXT, message: TEXT } },
    request_id: TEXT,
  },
};

export const ERROR_RESPONSES: Readonly<Record<ErrorForm, object>> = {
  Problem: {
    description: "Refused or failed (RFC 9457).",
    content: { "application/problem+json": { schema: PROBLEM } },
  },
  OpenAiError: {
    description: "Refused or failed, in the format that OpenAI's clients expect.",
    headers: CODE_HEADER,
    content: { "application/json": { schema: OPENAI } },
  },
  AnthropicError: {
    description: "Refused or failed, in the format that Anthropic's clients expect.",
    headers: CODE_HEADER,
    content: { "application/json": { schema: ANTHROPIC } },
  },
  ClientError: {
    description:
      "Refused or failed. In Anthropic's format with the header `anthropic-version`, in OpenAI's with `x-stainless-lang`, " +
      "otherwise as RFC 9457.",
    headers: CODE_HEADER,
    content: {
      "application/problem+json": { schema: PROBLEM },
      "application/json": { schema: { oneOf: [OPENAI, ANTHROPIC] } },
    },
  },
};
