import { Inflate } from "fflate";
import { Fault, messageOf } from "../fault.ts";

/** The most entries that a zip file may list. */
const MAX_ENTRIES = 10_000;
/** Bytes passed to the inflater at a time. Deflate expands at most 1,032 times (zlib's technical details). */
const SLICE = 8_192;

const END = 0x06054b50;
const END_LENGTH = 22;
const ENTRY = 0x02014b50;
const ENTRY_LENGTH = 46;
const LOCAL = 0x04034b50;
const LOCAL_LENGTH = 30;
const STORED = 0;
const DEFLATED = 8;

interface Entry {
  readonly name: string;
  readonly method: number;
  readonly encrypted: boolean;
  readonly compressed: number;
  /** Offset of its local header. */
  readonly offset: number;
}

/**
 * The entries of a zip file named in `wanted`, inflated to at most `most` bytes together. The sizes stated in the
 * file are not trusted: bytes are counted as they come out of the inflater, which is stopped at the limit.
 *
 * Entries are found by the central directory, as every unzip program does: a scan for local headers would have to
 * guess where an entry written without its size ends (as office programs write them).
 * @throws Fault
 */
export function unzip(
  bytes: Uint8Array,
  wanted: (name: string) => boolean,
  most: number,
): Map<string, Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const files = new Map<string, Uint8Array>();
  let left = most;
  try {
    for (const entry of entriesOf(bytes, view)) {
      if (!wanted(entry.name)) continue;
      if (entry.encrypted) throw new Fault("is encrypted");
      const file = inflate(contentOf(bytes, view, entry), entry.method, left);
      left -= file.length;
      files.set(entry.name, file);
    }
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault(`is a broken zip file: ${messageOf(error)}`, { cause: error });
  }
  return files;
}

function* entriesOf(bytes: Uint8Array, view: DataView): Generator<Entry> {
  const end = endOf(view);
  const count = view.getUint16(end + 10, true);
  if (count > MAX_ENTRIES) throw new Fault(`has more than ${MAX_ENTRIES.toLocaleString("en")} entries`);
  let at = view.getUint32(end + 16, true);
  for (let index = 0; index < count; index += 1) {
    if (view.getUint32(at, true) !== ENTRY) throw new Error("its directory is damaged");
    const nameLength = view.getUint16(at + 28, true);
    const name = new TextDecoder().decode(bytes.subarray(at + ENTRY_LENGTH, at + ENTRY_LENGTH + nameLength));
    yield {
      name,
      method: view.getUint16(at + 10, true),
      encrypted: (view.getUint16(at + 8, true) & 1) === 1,
      compressed: view.getUint32(at + 20, true),
      offset: view.getUint32(at + 42, true),
    };
    at += ENTRY_LENGTH + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
}

/** Position of the end-of-central-directory record, before a comment of at most 65,535 bytes. */
function endOf(view: DataView): number {
  const last = view.byteLength - END_LENGTH;
  for (let at = last; at >= 0 && at >= last - 0xffff; at -= 1) {
    if (view.getUint32(at, true) === END) return at;
  }
  throw new Fault("is not a zip file");
}

function contentOf(bytes: Uint8Array, view: DataView, { offset, compressed }: Entry): Uint8Array {
  if (view.getUint32(offset, true) !== LOCAL) throw new Error("an entry is not where the directory says");
  const start = offset + LOCAL_LENGTH + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true);
  if (start + compressed > bytes.length) throw new Error("an entry extends beyond the end of the file");
  return bytes.subarray(start, start + compressed);
}

function inflate(content: Uint8Array, method: number, most: number): Uint8Array {
  const tooMuch = () => new Fault("inflates to more than the limit");
  if (method === STORED) {
    if (content.length > most) throw tooMuch();
    return content;
  }
  if (method !== DEFLATED) throw new Error(`compression method ${method} is unknown`);
  const parts: Uint8Array[] = [];
  let length = 0;
  const inflater = new Inflate((part) => {
    length += part.length;
    if (length > most) throw tooMuch();
    parts.push(part);
  });
  for (let at = 0, last = false; !last; at += SLICE) {
    last = at + SLICE >= content.length;
    inflater.push(content.subarray(at, at + SLICE), last);
  }
  return Buffer.concat(parts, length);
}
