/** The bytes of a streamed chat completion. They are encoded once, because scripts are often used many times. */
import type { Behaviour, UsageScript } from "./behaviour.ts";

export const COMPLETION_ID = "chatcmpl-fake";
export const CREATED = 1_700_000_000;
const encoder = new TextEncoder();

/** A stream's frames in order. */
export interface Frames {
  /** The assistant's role, before anything else. */
  readonly role: Uint8Array;
  /** One frame for each chunk of text, then those of the tool calls. */
  readonly content: readonly Uint8Array[];
  /** The finish reason. */
  readonly finish: Uint8Array;
  readonly usage: Uint8Array | undefined;
  readonly done: Uint8Array;
  /** The whole stream in one piece, with and without usage. */
  readonly whole: Uint8Array<ArrayBuffer>;
  readonly wholeWithUsage: Uint8Array<ArrayBuffer>;
}

const DONE = encoder.encode("data: [DONE]\n\n");
const encoded = new WeakMap<Behaviour, Map<string, Frames>>();

/** The frames of a behaviour. `usage` is the usage to report, if any. */
export function framesOf(behaviour: Behaviour, model: string, usage: UsageScript | null): Frames {
  let byModel = encoded.get(behaviour);
  if (byModel === undefined) {
    byModel = new Map();
    encoded.set(behaviour, byModel);
  }
  const key = usage === null ? model : `${model} ${usage.prompt_tokens} ${usage.completion_tokens}`;
  let frames = byModel.get(key);
  if (frames === undefined) {
    frames = encodeFrames(behaviour, model, usage);
    byModel.set(key, frames);
  }
  return frames;
}

function encodeFrames(behaviour: Behaviour, model: string, usage: UsageScript | null): Frames {
  const frame = (delta: object, finish: string | null = null) =>
    sse(model, { choices: [{ index: 0, delta, finish_reason: finish }] });
  const role = frame({ role: "assistant", content: "" });
  const content = (behaviour.chunks ?? []).map((chunk) => frame({ content: chunk }));
  for (const [index, call] of (behaviour.toolCalls ?? []).entries()) {
    const text = argumentsOf(call.arguments);
    const half = Math.ceil(text.length / 2);
    const opening = {
      index,
      id: callId(index),
      type: "function",
      function: { name: call.name, arguments: "" },
    };
    content.push(frame({ tool_calls: [opening] }));
    for (const part of [text.slice(0, half), text.slice(half)]) {
      if (part !== "") content.push(frame({ tool_calls: [{ index, function: { arguments: part } }] }));
    }
  }
  const finish = frame({}, finishReason(behaviour));
  const usageFrame = usage === null ? undefined : sse(model, { choices: [], usage: totalled(usage) });
  const head = [role, ...content, finish];
  return {
    role,
    content,
    finish,
    usage: usageFrame,
    done: DONE,
    whole: concat([...head, DONE]),
    wholeWithUsage: concat(usageFrame === undefined ? [...head, DONE] : [...head, usageFrame, DONE]),
  };
}

function sse(model: string, rest: object): Uint8Array {
  const chunk = { id: COMPLETION_ID, object: "chat.completion.chunk", created: CREATED, model, ...rest };
  return encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`);
}

function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function argumentsOf(value: object | string): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function callId(index: number): string {
  return `call_${index}`;
}

export function finishReason(behaviour: Behaviour): "tool_calls" | "stop" {
  return (behaviour.toolCalls?.length ?? 0) > 0 ? "tool_calls" : "stop";
}

export function totalled(usage: UsageScript): UsageScript & { total_tokens: number } {
  return { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens };
}
