const LF = 0x0a;
const CR = 0x0d;

/** Splits a stream of server-sent events at its blank lines. Events that arrive whole are not copied. */
export class EventSplitter {
  #rest: Buffer = Buffer.alloc(0);

  /** Bytes of the event that has not ended yet. */
  get waiting(): number {
    return this.#rest.length;
  }

  /** @returns the events that have ended with this part, as they came; empty if none has */
  add(part: Uint8Array): Buffer {
    const bytes = Buffer.from(part.buffer, part.byteOffset, part.length);
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const end = endOfLastEvent(all);
    this.#rest = all.subarray(end);
    return all.subarray(0, end);
  }

  /** What is left at the end of the stream: an event without a blank line. */
  end(): Buffer {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest;
  }
}

/** The events in bytes that contain only whole ones. */
export function* eventsIn(bytes: Buffer): Generator<Buffer> {
  let from = 0;
  while (from < bytes.length) {
    const end = endOfFirstEvent(bytes, from);
    yield bytes.subarray(from, end);
    from = end;
  }
}

/** The data of an event: its `data` lines. */
export function dataOf(event: Buffer): string {
  const lines = event.toString().split(/\r\n|\n|\r/);
  const data = lines.flatMap((line) => (line.startsWith("data:") ? [line.slice(5).replace(/^ /, "")] : []));
  return data.join("\n");
}

/** The position after the last blank line; 0 if there is none. */
function endOfLastEvent(bytes: Buffer): number {
  for (let at = bytes.lastIndexOf(LF); at > 0; at = bytes.lastIndexOf(LF, at - 1)) {
    if (isBlankLine(bytes, at)) return at + 1;
  }
  return 0;
}

function endOfFirstEvent(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf(LF, from + 1); at >= 0; at = bytes.indexOf(LF, at + 1)) {
    if (isBlankLine(bytes, at)) return at + 1;
  }
  return bytes.length;
}

/** Whether the line that ends here is empty: `\n\n` or `\n\r\n`. */
function isBlankLine(bytes: Buffer, at: number): boolean {
  return bytes[at - 1] === LF || (bytes[at - 1] === CR && bytes[at - 2] === LF);
}
