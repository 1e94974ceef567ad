import type { Message, ToolCall, ToolResult, UserPart } from "../message.ts";
import type { JsonSchema, Tool } from "../tools/tool.ts";
import { textOfFile } from "./file-text.ts";

/** The content of one request to a model. */
export interface RequestContent {
  readonly instructions: string | undefined;
  readonly messages: readonly Message[];
  /** The tools whose definitions are sent. */
  readonly tools: readonly Tool[];
  /** The schema of the output, if it is sent separately from the instructions. */
  readonly outputSchema?: JsonSchema | undefined;
}

/** How to measure a part: the overhead of JSON and of a provider's dialect, and the size of the text. */
interface Measure {
  readonly message: number;
  readonly call: number;
  readonly tool: number;
  /** Whether the opaque signatures of calls count. */
  readonly isSigned: boolean;
  /** The maximum number of bytes counted for a file that is not text. Base64 needs no escapes. */
  readonly mostOfFile: number;
  text(text: string): number;
  /** Cached sizes: of messages, results and tools for all steps of a run, and of schemas for all runs. */
  readonly known: WeakMap<object, number>;
}

/**
 * Providers scale images down, and bill a page of a PDF like an image. Without a count from the provider, a file is
 * charged as at most this many bytes, four of which are estimated to be one token.
 */
export const FILE_CONTENT = 256 * 1024;
/** At least the overhead of any provider's dialect: roles, types, quotes, names, the keys of a tool's definition. */
const OVERHEAD = {
  ...{ message: 64, call: 192, tool: 160, isSigned: true },
  mostOfFile: Number.POSITIVE_INFINITY,
};
const WIRE: Measure = { ...OVERHEAD, text: jsonBytes, known: new WeakMap() };
/** At least WIRE, without reading the text: JSON takes at most six bytes for a UTF-16 code unit. */
const LENGTHS: Measure = { ...OVERHEAD, text: (text) => 6 * text.length, known: new WeakMap() };
const NO_OVERHEAD = { message: 0, call: 0, tool: 0, text: textBytes };
const CONTENT: Measure = { ...NO_OVERHEAD, isSigned: true, mostOfFile: FILE_CONTENT, known: new WeakMap() };
const TEXT: Measure = { ...NO_OVERHEAD, isSigned: false, mostOfFile: 0, known: new WeakMap() };

/**
 * The size in bytes of a request to a model, as JSON: instructions, messages, tool calls and results, and the
 * definitions of all offered tools, all of which providers bill. The result is at least the number of bytes sent in
 * any dialect, not counting the head of the request (its model and options), which takes less than 512 bytes.
 */
export function requestBytes(content: RequestContent): number {
  return sum(content, WIRE);
}

/** The same without the overhead of JSON: only the content that a model reads. */
export function contentBytes(content: RequestContent): number {
  return sum(content, CONTENT);
}

/** The messages of a request, without the definitions of tools. */
type Conversation = Pick<RequestContent, "instructions" | "messages">;

/** Whether a conversation takes more than `limit` bytes of a request. */
export function exceedsBytes(conversation: Conversation, limit: number): boolean {
  return exceeds(conversation, limit, WIRE);
}

/**
 * Whether the text that a tokenizer must process is longer than `limit`. Providers write tool definitions in their
 * own way, and signatures are not necessarily text to a model, so both are left out.
 */
export function exceedsText(conversation: Conversation, limit: number): boolean {
  return exceeds(conversation, limit, TEXT);
}

/** Reads the text only if its length does not decide the answer: 100 kB take 0.7 ms on a busy core. */
function exceeds(conversation: Conversation, limit: number, measure: Measure): boolean {
  const content = { ...conversation, tools: [] };
  return sum(content, LENGTHS) > limit && sum(content, measure) > limit;
}

function sum({ instructions, messages, tools, outputSchema }: RequestContent, measure: Measure): number {
  let bytes = instructions === undefined ? 0 : measure.message + measure.text(instructions);
  for (const message of messages) bytes += messageBytes(message, measure);
  for (const tool of tools) bytes += toolBytes(tool, measure);
  if (outputSchema) bytes += measure.tool + schemaBytes(outputSchema, measure);
  return bytes;
}

function messageBytes(given: Message, measure: Measure): number {
  return once(measure, given, (message) => measuredMessage(message, measure));
}

function measuredMessage(message: Message, measure: Measure): number {
  switch (message.role) {
    case "user": {
      let bytes = measure.message + measure.text(message.text);
      for (const part of message.parts ?? []) bytes += partBytes(part, measure);
      return bytes;
    }
    case "assistant": {
      let bytes = measure.message + measure.text(message.text);
      for (const call of message.toolCalls) bytes += callBytes(call, measure);
      return bytes;
    }
    case "tool": {
      let bytes = measure.message;
      for (const result of message.results) bytes += measuredResult(result, measure);
      return bytes;
    }
  }
}

function partBytes(part: UserPart, measure: Measure): number {
  if (part.type === "text") return measure.message + measure.text(part.text);
  const text = textOfFile(part);
  if (text !== undefined) return measure.message + measure.text(text);
  return measure.message + Math.min(part.mediaType.length + part.data.length, measure.mostOfFile);
}

function measuredResult(result: ToolResult, measure: Measure): number {
  return once(measure, result, ({ id, output }) => {
    return measure.call + measure.text(id) + valueBytes(output, measure);
  });
}

function callBytes({ id, arguments: input, signatures }: ToolCall, measure: Measure): number {
  const signed = signatures === undefined || !measure.isSigned ? 0 : valueBytes(signatures, measure);
  return measure.call + measure.text(id) + valueBytes(input, measure) + signed;
}

function toolBytes(tool: Tool, measure: Measure): number {
  return once(measure, tool, ({ name, description, inputSchema }) => {
    const schema = schemaBytes(inputSchema, measure);
    return measure.tool + measure.text(name) + measure.text(description) + schema;
  });
}

function schemaBytes(schema: JsonSchema, measure: Measure): number {
  return once(measure, schema, (value) => textBytes(JSON.stringify(value)));
}

function once<Value extends object>(
  { known }: Measure,
  value: Value,
  size: (value: Value) => number,
): number {
  let bytes = known.get(value);
  if (bytes === undefined) {
    bytes = size(value);
    known.set(value, bytes);
  }
  return bytes;
}

/** Some dialects carry a value as JSON inside a string, so its quotes are escaped again. */
function valueBytes(value: unknown, measure: Measure): number {
  return measure.text(typeof value === "string" ? value : JSON.stringify(value));
}

/**
 * Size in bytes of a string in UTF-8, computed without encoding it. A lone surrogate counts as its replacement
 * character, three bytes.
 */
export function textBytes(text: string): number {
  return scan(text, 0);
}

/** Size in bytes of a string as JSON, with quotes, backslashes and control characters escaped. */
export function jsonBytes(text: string): number {
  return scan(text, 1);
}

/** @param escaped 1 to include JSON escapes, otherwise 0 */
function scan(text: string, escaped: 0 | 1): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) {
      if (unit >= 0x20 && unit !== 0x22 && unit !== 0x5c) continue;
      bytes += escaped * (unit < 0x20 && !isShort(unit) ? 5 : 1);
    } else if (unit < 0x800) bytes += 1;
    else if (unit < 0xd800 || unit >= 0xe000) bytes += 2;
    else if (unit < 0xdc00 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) {
      // A surrogate pair takes four bytes, two of which are already counted for its code units.
      bytes += 2;
      index += 1;
    } else bytes += 2 + 3 * escaped;
  }
  return bytes;
}

/** Backspace, tab, line feed, form feed and carriage return have two-character escapes; other control characters take six. */
function isShort(unit: number): boolean {
  return unit >= 0x08 && unit <= 0x0d && unit !== 0x0b;
}
