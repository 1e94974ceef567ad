import { constants, inflateRawSync } from "node:zlib";
import { Fault } from "./fault.ts";
import type { Budget } from "./pdf-lexer.ts";

/** A filter of ISO 32000-1, 7.4, with what its parameters say, as far as the length of its output hangs on them. */
export interface PdfFilter {
  readonly name: string;
  readonly earlyChange: number;
  readonly predictor: {
    readonly kind: number;
    readonly rowBytes: number;
    readonly pixelBytes: number;
  } | null;
}

/** A stream that is damaged. Decoders differ in what they make of one. */
export class Damaged extends Error {}

/** Output of one decoder, which grows up to a bound and not beyond. */
class Output {
  length = 0;
  #bytes: Uint8Array;
  readonly #most: number;

  constructor(most: number) {
    this.#bytes = new Uint8Array(Math.min(most, 4_096));
    this.#most = most;
  }

  push(byte: number): void {
    if (this.length === this.#bytes.length) this.#grow();
    this.#bytes[this.length] = byte;
    this.length += 1;
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  #grow(): void {
    if (this.length >= this.#most) throw tooLarge(this.#most);
    const larger = new Uint8Array(Math.min(this.#most, this.length * 2));
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}

type Decode = (data: Uint8Array, filter: PdfFilter, most: number, budget: Budget) => Uint8Array;

const DECODERS: Readonly<Record<string, Decode>> = {
  Fl: inflate,
  FlateDecode: inflate,
  LZW: unpackLzw,
  LZWDecode: unpackLzw,
  RL: unpackRuns,
  RunLengthDecode: unpackRuns,
  A85: decodeBase85,
  ASCII85Decode: decodeBase85,
  AHx: decodeHex,
  ASCIIHexDecode: decodeHex,
};

const PREDICTED = new Set<Decode>([inflate, unpackLzw]);

/**
 * What pdf.js would make of a stream, to at most `most` bytes. Data may go on behind the stream's own end. A filter that
 * isn't known changes nothing, as with pdf.js.
 * @throws Fault where it is more
 * @throws Damaged
 */
export function decode(
  data: Uint8Array,
  filters: readonly PdfFilter[],
  most: number,
  budget: Budget,
): Uint8Array {
  let bytes = data;
  for (const filter of filters) {
    const decoder = DECODERS[filter.name];
    if (decoder === undefined) continue;
    bytes = decoder(bytes, filter, most, budget);
    if (filter.predictor !== null && PREDICTED.has(decoder)) bytes = unpredict(bytes, filter.predictor);
  }
  return bytes;
}

export function tooLarge(most: number): Fault {
  return new Fault(`has a part that unfolds to more than ${Math.round(most / 1_048_576)} MiB`);
}

function inflate(data: Uint8Array, _: PdfFilter, most: number, budget: Budget): Uint8Array {
  const [method = 0, flags = 0] = data;
  // RFC 1950. Of a stream with another header, pdf.js makes nothing.
  if (data.length < 2 || (method & 15) !== 8 || ((method << 8) + flags) % 31 !== 0 || (flags & 32) !== 0) {
    return new Uint8Array();
  }
  try {
    // zlib is strict: what it takes, every decoder reads alike. What is cut off counts as far as it goes.
    const result: unknown = inflateRawSync(data.subarray(2), {
      maxOutputLength: most,
      finishFlush: constants.Z_SYNC_FLUSH,
      info: true,
    });
    const { buffer, engine } = result as { buffer: Buffer; engine: { bytesWritten: number } };
    budget.spend(engine.bytesWritten);
    return buffer;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    if (code === "ERR_BUFFER_TOO_LARGE") throw tooLarge(most);
    if (error instanceof Fault) throw error;
    // How far it came isn't told.
    budget.spend(Math.min(data.length, most));
    throw new Damaged();
  }
}

function unpackLzw(data: Uint8Array, { earlyChange }: PdfFilter, most: number, budget: Budget): Uint8Array {
  const output = new Output(most);
  const values = new Uint8Array(4_096).map((_, code) => code & 255);
  const lengths = new Uint16Array(4_096).fill(1, 0, 256);
  const previousCodes = new Uint16Array(4_096);
  const sequence = new Uint8Array(4_096);
  let length = 0;
  let [width, next, previous, bits, held, at] = [9, 258, 0, 0, 0, 0];
  for (;;) {
    for (; held < width && at < data.length; at += 1, held += 8) bits = (bits << 8) | (data[at] ?? 0);
    if (held < width) break;
    held -= width;
    const code = (bits >>> held) & ((1 << width) - 1);
    const follows = length > 0;
    if (code < 256) {
      sequence[0] = code;
      length = 1;
    } else if (code === 256) {
      [width, next, length] = [9, 258, 0];
      continue;
    } else if (code === 257) {
      break;
    } else if (code < next) {
      length = lengths[code] ?? 0;
      for (let index = length - 1, from = code; index >= 0; index -= 1) {
        sequence[index] = values[from] ?? 0;
        from = previousCodes[from] ?? 0;
      }
    } else {
      sequence[length] = sequence[0] ?? 0;
      length += 1;
    }
    if (follows) {
      previousCodes[next] = previous;
      lengths[next] = (lengths[previous] ?? 0) + 1;
      values[next] = sequence[0] ?? 0;
      next += 1;
      const used = next + earlyChange;
      if ((used & (used - 1)) === 0) width = Math.min(Math.log2(used) + 1, 12) | 0;
    }
    previous = code;
    for (let index = 0; index < length; index += 1) output.push(sequence[index] ?? 0);
  }
  budget.spend(at);
  return output.finish();
}

function unpackRuns(data: Uint8Array, _: PdfFilter, most: number, budget: Budget): Uint8Array {
  const output = new Output(most);
  let at = 0;
  while (at + 1 < data.length) {
    const length = data[at] ?? 128;
    if (length === 128) break;
    if (length < 128) {
      for (const byte of data.subarray(at + 1, at + 2 + length)) output.push(byte);
      at += length + 2;
    } else {
      for (let index = 257 - length; index > 0; index -= 1) output.push(data[at + 1] ?? 0);
      at += 2;
    }
  }
  budget.spend(at);
  return output.finish();
}

function decodeBase85(data: Uint8Array, _: PdfFilter, most: number, budget: Budget): Uint8Array {
  const output = new Output(most);
  const group: number[] = [];
  let at = 0;
  const flush = (bytes: number) => {
    let value = 0;
    for (let index = 0; index < 5; index += 1) value = value * 85 + ((group[index] ?? 117) - 33);
    for (let index = 0; index < bytes; index += 1) output.push((value / 256 ** (3 - index)) & 255);
    group.length = 0;
  };
  for (; at < data.length; at += 1) {
    const code = data[at] ?? 0;
    if (code === 126) break;
    if (code === 32 || code === 9 || code === 10 || code === 13) continue;
    if (code === 122 && group.length === 0) for (let index = 0; index < 4; index += 1) output.push(0);
    else if (group.push(code) === 5) flush(4);
  }
  if (group.length > 1) flush(group.length - 1);
  budget.spend(at);
  return output.finish();
}

function decodeHex(data: Uint8Array, _: PdfFilter, most: number, budget: Budget): Uint8Array {
  const output = new Output(most);
  let first = -1;
  let at = 0;
  for (; at < data.length && data[at] !== 62; at += 1) {
    const digit = Number.parseInt(String.fromCharCode(data[at] ?? 0), 16);
    if (Number.isNaN(digit)) continue;
    if (first === -1) first = digit;
    else {
      output.push((first << 4) | digit);
      first = -1;
    }
  }
  if (first !== -1) output.push(first << 4);
  budget.spend(at);
  return output.finish();
}

/** PNG's predictors (RFC 2083, section 6), which 7.4.4.4 takes over: each row starts with which one it is. */
function unpredict(
  data: Uint8Array,
  { rowBytes, pixelBytes }: NonNullable<PdfFilter["predictor"]>,
): Uint8Array {
  const rows = Math.ceil(data.length / (rowBytes + 1));
  const out = new Uint8Array(rows * rowBytes);
  let to = 0;
  for (let at = 0; at < data.length; at += rowBytes + 1) {
    const kind = data[at] ?? 0;
    const start = to;
    for (const byte of data.subarray(at + 1, at + 1 + rowBytes)) {
      const left = to - start >= pixelBytes ? (out[to - pixelBytes] ?? 0) : 0;
      const up = out[to - rowBytes] ?? 0;
      const corner = to - start >= pixelBytes ? (out[to - rowBytes - pixelBytes] ?? 0) : 0;
      out[to] = byte + predicted(kind, left, up, corner);
      to += 1;
    }
  }
  return out.subarray(0, to);
}

function predicted(kind: number, left: number, up: number, corner: number): number {
  if (kind === 1) return left;
  if (kind === 2) return up;
  if (kind === 3) return (left + up) >> 1;
  if (kind !== 4) return 0;
  const estimate = left + up - corner;
  const [a, b, c] = [Math.abs(estimate - left), Math.abs(estimate - up), Math.abs(estimate - corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}
