import {
  BlobReader,
  ERR_BAD_FORMAT,
  ERR_EOCDR_NOT_FOUND,
  type FileEntry,
  ZipReader,
} from "../../../article14/format/zip.ts";
import { type DirectoryRecord, MOST_FILES, readDirectory } from "./directory.ts";
import { ArchiveError, shown } from "./error.ts";
import { checkLayout } from "./layout.ts";

/** A file in an archive. */
export interface ArchivedFile {
  readonly name: string;
  /**
   * Unpacks the file while it is read, and stops if the reader stops. @throws ArchiveError if it cannot be unpacked
   */
  chunks(): AsyncGenerator<Uint8Array, void>;
}

/** Maximum number of bytes per read. A bundle's directory takes a few kilobytes. */
const READ_LIMIT = 4_000_000;

/** Limits the size of reads, since a hostile archive may state any size. */
class CappedReader extends BlobReader {
  override readUint8Array(index: number, length: number): Promise<Uint8Array> {
    if (length > READ_LIMIT) throw new ArchiveError("its directory is far too large for a bundle");
    return super.readUint8Array(index, length);
  }
}

/**
 * The files of a zip, in the order of its directory. An archive that two programs could read differently is rejected
 * (see `readDirectory` and `checkLayout`). The library that unpacks the files must find the same files.
 *
 * @throws ArchiveError
 */
export async function openArchive(blob: Blob): Promise<readonly ArchivedFile[]> {
  const entries = await readEntries(blob);
  const directory = await readDirectory(blob);
  await checkLayout(blob, directory);
  if (entries.length !== directory.records.length) throw differently();
  return directory.records.map((record, index) => {
    const entry = entries[index];
    if (!entry || !isSame(entry, record)) throw differently();
    return { name: record.name, chunks: () => unpack(entry) };
  });
}

/** @throws ArchiveError. If there is no directory, the file may be truncated. */
async function readEntries(blob: Blob): Promise<readonly FileEntry[]> {
  const reader = new ZipReader(new CappedReader(blob), {
    strictness: "strict",
    checkCrc32: true,
    checkOverlappingEntry: true,
  });
  const entries: FileEntry[] = [];
  try {
    for await (const entry of reader.getEntriesGenerator()) {
      if (entries.length >= MOST_FILES) throw new ArchiveError("it contains far too many files for a bundle");
      if (entry.directory || entry.encrypted) {
        throw new ArchiveError(`it contains ${shown(entry.filename)}, which is not a plain file`);
      }
      entries.push(entry);
    }
    return entries;
  } catch (error) {
    if (error instanceof ArchiveError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    const isIncomplete = reason === ERR_EOCDR_NOT_FOUND || reason === ERR_BAD_FORMAT;
    throw new ArchiveError(`its directory cannot be read: ${reason}`, isIncomplete);
  }
}

function isSame(entry: FileEntry, { name, offset, compressedSize, size }: DirectoryRecord): boolean {
  return (
    entry.filename === name &&
    entry.offset === offset &&
    entry.compressedSize === compressedSize &&
    entry.uncompressedSize === size
  );
}

function differently(): ArchiveError {
  return new ArchiveError("programs could read its directory in two ways");
}

async function* unpack(entry: FileEntry): AsyncGenerator<Uint8Array, void> {
  const pipe = new TransformStream<Uint8Array, Uint8Array>();
  const reader = pipe.readable.getReader();
  let failure: unknown;
  const unpacking = entry.getData(pipe.writable).catch((error: unknown) => {
    failure = error;
    // This is how the reader learns of the error, even if no byte was written.
    return pipe.writable.abort(error).catch(() => {});
  });
  let isWhole = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      yield value;
    }
    await unpacking;
    isWhole = failure === undefined;
    if (!isWhole) throw failure;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ArchiveError(`${shown(entry.filename)} cannot be unpacked: ${reason}`, false);
  } finally {
    if (!isWhole) await reader.cancel().catch(() => {});
  }
}
