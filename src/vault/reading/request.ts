import Type, { type Static } from "typebox";
import { validator } from "../../base/schema.ts";
import { BrokenFrame, frameOf, textFrame } from "../../reading/frames.ts";
import type { PrepareRequest } from "../messages.ts";

/**
 * A request to read one document, as two frames: its metadata, and its text in UTF-8 (or its base64 content as
 * received). A lone surrogate becomes U+FFFD in transit, as it does wherever a document is read.
 */
const Head = Type.Object(
  {
    document: Type.Integer(),
    title: Type.String(),
    kind: Type.Enum(["text", "base64"]),
    type: Type.String(),
  },
  { additionalProperties: false },
);
const head = validator(Head);

/** The request in pieces, each created on demand. */
export function* encodeRequest({ document, title, content }: PrepareRequest): Generator<Uint8Array> {
  const { kind, type } = content;
  yield frameOf(Buffer.from(JSON.stringify({ document, title, kind, type })));
  yield* textFrame(content.kind === "text" ? content.text : content.data);
}

/** Decodes a request from its two frames. @throws BrokenFrame */
export function decodeRequest(first: Uint8Array, second: Uint8Array): PrepareRequest {
  const { document, title, kind, type } = decodeHead(first);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(second);
  const content = kind === "text" ? ({ kind, text, type } as const) : ({ kind, data: text, type } as const);
  return { document, title, content };
}

function decodeHead(bytes: Uint8Array): Static<typeof Head> {
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (!head.is(value)) throw new BrokenFrame("a request without a head");
  return value;
}
