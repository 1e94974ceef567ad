import Type, { type Static } from "typebox";
import { validator } from "../../../base/schema.ts";
import { BrokenFrame, frameOf, textFrame } from "../../../reading/frames.ts";
import { FAILURE, type ReadingAnswer, type ReadingProtocol } from "../../../reading/protocol.ts";
import type { ApiDocumentRequest, ApiReading } from "./messages.ts";

/**
 * A request to read one document has two frames: its metadata, and its text in UTF-8. The answer is one frame of JSON
 * that contains schemas as strings, so that the server does not parse them.
 */
const closed = { additionalProperties: false } as const;
const Head = Type.Object(
  {
    url: Type.Union([Type.String(), Type.Null()]),
    hasBase: Type.Boolean(),
    reserved: Type.Union([
      Type.Object({ in: Type.Enum(["header", "query"]), name: Type.String() }, closed),
      Type.Null(),
    ]),
    secrets: Type.Array(Type.String()),
  },
  closed,
);
const Annotations = Type.Object(
  {
    title: Type.Optional(Type.String()),
    readOnlyHint: Type.Optional(Type.Boolean()),
    destructiveHint: Type.Optional(Type.Boolean()),
    idempotentHint: Type.Optional(Type.Boolean()),
    openWorldHint: Type.Optional(Type.Boolean()),
  },
  closed,
);
const Tool = Type.Object(
  {
    name: Type.String(),
    title: Type.Optional(Type.String()),
    description: Type.String(),
    inputSchemaJson: Type.String(),
    annotations: Type.Optional(Annotations),
    destructive: Type.Boolean(),
    bindingJson: Type.Optional(Type.String()),
  },
  closed,
);
const Listing = Type.Object(
  {
    tools: Type.Array(Tool),
    server: Type.Union([Type.String(), Type.Null()]),
    leftOut: Type.Array(Type.String()),
    leftOutCount: Type.Integer({ minimum: 0 }),
  },
  closed,
);
const Answer = Type.Union([
  Type.Object({ result: Listing, isLast: Type.Boolean() }, closed),
  Type.Object({ result: Type.Object({ fault: Type.String() }, closed), isLast: Type.Boolean() }, closed),
  FAILURE,
]);
const head = validator(Head);
const answer = validator(Answer);

export const API_DOCUMENTS: ReadingProtocol<ApiDocumentRequest, ApiReading> = {
  *encodeRequest({ text, url, hasBase, reserved, secrets }) {
    const known: Static<typeof Head> = { url, hasBase, reserved, secrets: [...secrets] };
    yield frameOf(Buffer.from(JSON.stringify(known)));
    yield* textFrame(text);
  },
  openAnswer: () => ({ push: decodeAnswer }),
};

/** Decodes a request from its two frames. @throws BrokenFrame */
export function decodeRequest(first: Uint8Array, second: Uint8Array): ApiDocumentRequest {
  const known: unknown = parse(first);
  if (!head.is(known)) throw new BrokenFrame("a request without a head");
  return { ...known, text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(second) };
}

export function* encodeAnswer(given: ReadingAnswer<ApiReading>): Generator<Uint8Array> {
  yield Buffer.from(JSON.stringify(given));
}

function decodeAnswer(body: Uint8Array): ReadingAnswer<ApiReading> {
  const value: unknown = parse(body);
  if (!answer.is(value)) throw new BrokenFrame("an invalid answer");
  return value;
}

function parse(bytes: Uint8Array): unknown {
  return JSON.parse(new TextDecoder().decode(bytes));
}
