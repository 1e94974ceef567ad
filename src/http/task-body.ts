import Type, { type Static } from "typebox";
import { invalidField } from "../base/errors.ts";
import { MOST_DOCUMENTS } from "../tasks/input/documents.ts";
import { documentsOf, type InputMessage, type InputPart } from "../tasks/input/task-input.ts";
import type { DispatchRequest } from "../tasks/queue/dispatch-request.ts";
import { DocumentId } from "../vault/fields.ts";
import { refuseTwice } from "./body/body.ts";

/** The maximum total number of characters in a task's text. */
const TEXT_LENGTH = 1_000_000;
/** The maximum number of bytes in all files of a task. As base64 they take 8 MiB of the 10 MiB that a body may have. */
const FILE_BYTES = 6 * 1024 * 1024;
const MEDIA_TYPE = /^[A-Za-z0-9][\w.+-]{0,126}\/[A-Za-z0-9][\w.+-]{0,126}$/;
const METADATA_KEY = "^[\\s\\S]{1,64}$";

const Part = Type.Object(
  {
    type: Type.Enum(["text", "image", "file"]),
    text: Type.Optional(Type.String({ minLength: 1, maxLength: TEXT_LENGTH, description: "Of a text." })),
    media_type: Type.Optional(
      Type.String({
        maxLength: 255,
        description: "The media type of an image or a file, such as `image/png`.",
      }),
    ),
    data: Type.Optional(
      Type.String({ minLength: 1, description: "The content of an image or a file, in base64." }),
    ),
    document: Type.Optional(DocumentId),
  },
  {
    additionalProperties: false,
    description:
      "A text; an image or a file as base64; or a file that is a document in the vault, whose text is sent.",
  },
);
const Message = Type.Object(
  {
    role: Type.Enum(["user", "assistant"]),
    content: Type.Union([
      Type.String({ minLength: 1, maxLength: TEXT_LENGTH }),
      Type.Array(Part, { minItems: 1, maxItems: 100 }),
    ]),
  },
  { additionalProperties: false },
);

export const TaskCreate = Type.Object(
  {
    agent: Type.String({ minLength: 1, maxLength: 63 }),
    prompt: Type.Optional(
      Type.String({ minLength: 1, maxLength: TEXT_LENGTH, description: "Either this or `messages`." }),
    ),
    messages: Type.Optional(
      Type.Array(Message, {
        minItems: 1,
        maxItems: 200,
        description:
          "In place of `prompt`: a conversation whose last message is the user's. At most 1,000,000 characters of " +
          "text and 6 MiB of files, in a body of at most 10 MiB.",
      }),
    ),
    continues: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: "task_…: a finished task of the same agent whose conversation is continued.",
      }),
    ),
    output_schema: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          "A JSON Schema. The output is then JSON that is valid against it, and `output_json` its value.",
      }),
    ),
    tier: Type.Optional(
      Type.Integer({
        minimum: 1,
        // The ledger accepts only integers, and would write a greater number as 1e+21.
        maximum: Number.MAX_SAFE_INTEGER,
        description: "Default: the lowest that the agent's policy allows.",
      }),
    ),
    tools: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
        maxItems: 128,
        description: "Tools the task may call, `<connector>.<tool>`. Default: none.",
      }),
    ),
    metadata: Type.Optional(
      // A typebox record uses only the pattern of its keys, and accepts keys that do not match it.
      Type.Record(Type.String({ pattern: METADATA_KEY }), Type.String({ maxLength: 512 }), {
        additionalProperties: false,
        maxProperties: 16,
      }),
    ),
  },
  { additionalProperties: false },
);

/**
 * The request in a body.
 * @throws Problem 422 `validation_failed` for anything that the schema cannot express
 */
export function dispatchRequest(body: Static<typeof TaskCreate>): DispatchRequest {
  const { messages: given, output_schema: outputSchema, ...rest } = body;
  refuseTwice("/tools", body.tools);
  if (given === undefined) {
    if (body.prompt === undefined) throw invalidField("/prompt", "is required, or `messages` in its place");
    return { ...rest, ...(outputSchema && { outputSchema }) };
  }
  if (body.prompt !== undefined) throw invalidField("/messages", "replaces `prompt`: send only one of them");
  const messages = given.map(toMessage);
  if (messages.at(-1)?.role !== "user") {
    throw invalidField(`/messages/${messages.length - 1}/role`, "must be user in the last message");
  }
  limitLengths(messages);
  if (documentsOf(messages).length > MOST_DOCUMENTS) {
    throw invalidField("/messages", `names more than ${MOST_DOCUMENTS} documents`);
  }
  return { ...rest, messages, ...(outputSchema && { outputSchema }) };
}

function toMessage({ role, content }: Static<typeof Message>, at: number): InputMessage {
  if (typeof content === "string") return { role, content };
  return {
    role,
    content: content.map((part, index) => {
      const path = `/messages/${at}/content/${index}`;
      if (role === "assistant" && part.type !== "text") {
        throw invalidField(`${path}/type`, "must be text in an assistant's message");
      }
      return toPart(part, path);
    }),
  };
}

/** The fields that each kind of part needs; any other is refused. */
function toPart(part: Static<typeof Part>, path: string): InputPart {
  const { type, text, media_type, data, document } = part;
  const allow = (names: readonly string[]) => {
    for (const name of Object.keys(part)) {
      if (name !== "type" && !names.includes(name))
        throw invalidField(`${path}/${name}`, "does not belong here");
    }
  };
  if (type === "text") {
    allow(["text"]);
    if (text === undefined) throw invalidField(`${path}/text`, "is required");
    return { type, text };
  }
  if (document !== undefined) {
    allow(["document", "media_type"]);
    if (type === "image") {
      throw invalidField(
        `${path}/type`,
        "must be file: the vault keeps the text of a document, not its pictures. Send an image as `data`",
      );
    }
    return { type, document, ...(media_type === undefined ? {} : { media_type }) };
  }
  allow(["media_type", "data"]);
  if (data === undefined) throw invalidField(`${path}/data`, "is required, or `document` in its place");
  if (media_type === undefined) throw invalidField(`${path}/media_type`, "is required");
  if (!MEDIA_TYPE.test(media_type)) throw invalidField(`${path}/media_type`, "must be a media type");
  if (type === "image" && !media_type.startsWith("image/")) {
    throw invalidField(`${path}/media_type`, "must be the type of an image");
  }
  if (!isBase64(data)) throw invalidField(`${path}/data`, "must be base64 (RFC 4648, section 4)");
  return { type, media_type, data };
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

function limitLengths(messages: readonly InputMessage[]): void {
  let [text, data] = [0, 0];
  for (const { content } of messages) {
    if (typeof content === "string") text += content.length;
    else {
      for (const part of content) {
        if ("text" in part) text += part.text.length;
        else if ("data" in part) data += Buffer.byteLength(part.data, "base64");
      }
    }
  }
  if (text > TEXT_LENGTH)
    throw invalidField("/messages", `must have at most ${TEXT_LENGTH} characters of text`);
  if (data > FILE_BYTES) throw invalidField("/messages", "must have at most 6 MiB of files");
}
