import Type, { type Static } from "typebox";
import { validator } from "../../base/schema.ts";
import type { PrepareRequest } from "../messages.ts";
import { BrokenFrame, frameHead, frameOf } from "./frames.ts";

/**
 * A request to read one document, as two frames: what is known of it, and its text in UTF-8 (or what was sent in base64, as it
 * came). A lone surrogate becomes U+FFFD on the way, as it does wherever a document is read.
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

/** UTF-16 code units that are encoded between two looks at other work. */
const SLICE = 256 * 1024;

/** The request in pieces, each made when it is asked for. */
export function* encodeRequest({ document, title, content }: PrepareRequest): Generator<Uint8Array> {
  const { kind, type } = content;
  yield frameOf(Buffer.from(JSON.stringify({ document, title, kind, type })));
  const text = content.kind === "text" ? content.text : content.data;
  yield frameHead(Buffer.byteLength(text));
  for (let from = 0; from < text.length; ) {
    const goal = Math.min(from + SLICE, text.length);
    const to = goal < text.length && isHighSurrogate(text.charCodeAt(goal - 1)) ? goal - 1 : goal;
    yield Buffer.from(text.slice(from, to));
    from = to;
  }
}

/** The request of two frames. @throws BrokenFrame */
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

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
