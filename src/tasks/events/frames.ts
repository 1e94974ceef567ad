/** The events of a task (contract, section 4), by name, with their data. */
export interface TaskEvents {
  readonly "task.created": { readonly id: string; readonly status: string };
  readonly "task.started": { readonly model: string; readonly tier: number };
  readonly "output.delta": { readonly text: string };
  readonly "output.reset": Record<string, never>;
  readonly "tool.call": { readonly id: string; readonly tool: string; readonly arguments: unknown };
  readonly "tool.result": {
    readonly id: string;
    readonly tool: string;
    readonly status: string;
    readonly duration_ms: number;
  };
  readonly "approval.required": {
    readonly call_id: string;
    readonly tool: string;
    readonly arguments: unknown;
  };
  readonly "approval.decided": {
    readonly call_id: string;
    readonly decision: "approve" | "deny";
    readonly actor: string;
  };
  readonly "model.fallback": { readonly from: string; readonly to: string; readonly reason: string };
  readonly "task.finished": object;
}

export type TaskEventName = keyof TaskEvents;

const encoder = new TextEncoder();
const LINE_FEED = 10;
const ID_PREFIX = encoder.encode("id: ");

/**
 * Encodes an event as a server-sent event (WHATWG HTML, section 9.2). JSON escapes every newline, carriage return and
 * lone surrogate in the data, so no text can end a frame or forge a field.
 */
export function encodeFrame<Name extends TaskEventName>(
  id: number,
  name: Name,
  data: TaskEvents[Name],
): Uint8Array {
  return encodeNamed(id, name, data);
}

/** Like `encodeFrame`. The name MUST NOT contain a line break. */
export function encodeNamed(id: number, name: string, data: object): Uint8Array {
  return encoder.encode(`id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

/**
 * The maximum number of bytes joined into one block. It is also the most that is written at once, or held for a
 * reader that has stopped reading.
 */
export const BLOCK_BYTES = 64 * 1024;

/** Joins consecutive frames into blocks of up to 64 KiB. A larger frame becomes its own block. */
export function* blocksOf(
  frames: readonly Uint8Array[],
): Generator<{ frames: number; bytes: Uint8Array }, void> {
  let from = 0;
  while (from < frames.length) {
    let length = frames[from]?.length ?? 0;
    let to = from + 1;
    for (let next = frames[to]; next && length + next.length <= BLOCK_BYTES; next = frames[++to])
      length += next.length;
    yield { frames: to - from, bytes: join(frames.slice(from, to), length) };
    from = to;
  }
}

/** A frame in pieces that are no longer than a block. */
export function piecesOf(frame: Uint8Array): readonly Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < frame.length; at += BLOCK_BYTES) pieces.push(frame.subarray(at, at + BLOCK_BYTES));
  return pieces;
}

/** Returns a single frame as it is: the same bytes for all readers. */
function join(frames: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = frames;
  if (only && frames.length === 1) return only;
  const joined = new Uint8Array(length);
  let at = 0;
  for (const frame of frames) {
    joined.set(frame, at);
    at += frame.length;
  }
  return joined;
}

/** The part of a block after the event `after`. Blank lines occur only at the ends of frames. */
export function framesAfter(block: Uint8Array, after: number): Uint8Array {
  let start = 0;
  while (start < block.length && frameId(block, start) <= after) start = nextFrame(block, start);
  return block.subarray(start);
}

function frameId(block: Uint8Array, start: number): number {
  let id = 0;
  for (let at = start + ID_PREFIX.length; block[at] !== LINE_FEED && at < block.length; at++) {
    id = id * 10 + (block[at] ?? 0) - 48;
  }
  return id;
}

function nextFrame(block: Uint8Array, start: number): number {
  let at = block.indexOf(LINE_FEED, start);
  while (at >= 0 && block[at + 1] !== LINE_FEED) at = block.indexOf(LINE_FEED, at + 1);
  return at < 0 ? block.length : at + 2;
}
