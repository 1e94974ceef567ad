import {
  configure,
  ERR_BAD_FORMAT,
  ERR_EOCDR_NOT_FOUND,
  type FileEntry,
  Uint8ArrayReader,
  ZipReader,
} from "@zip.js/zip.js/lib/zip-core-native.js";
import { Fault, messageOf } from "../fault.ts";

/** Maximum number of entries that a zip file may list. */
const MAX_ENTRIES = 10_000;
/** Bytes inflated at a time. Deflate expands at most 1,032 times (zlib's technical details). */
const SLICE = 8_192;

// Documents are read in a worker already. The sizes of slices can only be set for the whole library.
configure({ useWebWorkers: false, chunkSize: SLICE });

/**
 * The entries of a zip file named in `wanted`, inflated to at most `most` bytes together. The sizes stated in the
 * file are not trusted: bytes are counted as they are inflated, and inflating stops at the limit.
 * @throws Fault
 */
export async function unzip(
  bytes: Uint8Array,
  wanted: (name: string) => boolean,
  most: number,
): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  let entries = 0;
  let left = most;
  try {
    for await (const entry of new ZipReader(new Uint8ArrayReader(bytes)).getEntriesGenerator()) {
      entries += 1;
      if (entries > MAX_ENTRIES) throw new Fault(`has more than ${MAX_ENTRIES.toLocaleString("en")} entries`);
      if (entry.directory || !wanted(entry.filename)) continue;
      if (entry.encrypted) throw new Fault("is encrypted");
      const file = await inflate(entry, left);
      left -= file.length;
      files.set(entry.filename, file);
    }
  } catch (error) {
    if (error instanceof Fault) throw error;
    const message = messageOf(error);
    if (message === ERR_EOCDR_NOT_FOUND || message === ERR_BAD_FORMAT) {
      throw new Fault("is not a zip file", { cause: error });
    }
    throw new Fault(`is a broken zip file: ${message}`, { cause: error });
  }
  return files;
}

async function inflate(entry: FileEntry, most: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const target = new WritableStream<Uint8Array>({
    write(part) {
      length += part.length;
      if (length > most) throw new Error("too long");
      parts.push(part);
    },
  });
  try {
    await entry.getData(target, { checkCrc32: true });
  } catch (error) {
    // The library reports that its target is closed, but not why.
    if (length > most) throw new Fault("inflates to more than the limit");
    throw error;
  }
  return Buffer.concat(parts, length);
}
