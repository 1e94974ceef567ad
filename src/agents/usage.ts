import type { Message } from "./message.ts";

/** Tokens, as the provider counted them. `estimated` is true when a part of them was estimated from the text instead. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly estimated: boolean;
}

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, estimated: false };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    estimated: a.estimated || b.estimated,
  };
}

/** Tokens of so many bytes of UTF-8, at four bytes a token, rounded up. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / 4);
}

/** Bytes of the text in UTF-8, without encoding it. A lone surrogate half counts as its replacement character, three. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    if (unit < 0x800) bytes += 1;
    else {
      bytes += 2;
      const isPair = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00;
      // Both halves of a pair make four bytes together; their two units are counted already.
      if (isPair) index += 1;
    }
  }
  return bytes;
}

/** Bytes of all text that a model is sent: instructions, messages, tool arguments and results. */
export function promptBytes(instructions: string | undefined, messages: readonly Message[]): number {
  let bytes = instructions === undefined ? 0 : utf8Bytes(instructions);
  for (const message of messages) {
    switch (message.role) {
      case "user":
        bytes += utf8Bytes(message.text);
        break;
      case "assistant":
        bytes += utf8Bytes(message.text);
        for (const call of message.toolCalls) bytes += utf8Bytes(JSON.stringify(call.arguments));
        break;
      case "tool":
        for (const { output } of message.results) {
          bytes += utf8Bytes(typeof output === "string" ? output : JSON.stringify(output));
        }
    }
  }
  return bytes;
}
