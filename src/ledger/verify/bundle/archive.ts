import {
  BlobReader,
  ERR_BAD_FORMAT,
  ERR_EOCDR_NOT_FOUND,
  type FileEntry,
  ZipReader,
} from "../../article14/format/zip.ts";

/** Why nothing can be read, or not be believed. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";

  /** No archive at all, or a part of one. Else it was changed, or made so that others read it in another way. */
  readonly isIncomplete: boolean;

  constructor(message: string, isIncomplete: boolean) {
    super(message);
    this.isIncomplete = isIncomplete;
  }
}

/** A file of an archive. */
export interface ArchivedFile {
  readonly name: string;
  /** Unpacks it while it is read, and stops when nobody reads on. @throws ArchiveError for what can't be unpacked */
  chunks(): AsyncGenerator<Uint8Array, void>;
}

/** Files that are looked at; a bundle has ten. */
const MOST_FILES = 64;
/** Bytes that are read at once: a directory of a bundle has some kilobytes. */
const READ_LIMIT = 4_000_000;

/** Reads nothing whole into memory that a hostile archive could say is large. */
class CappedReader extends BlobReader {
  override readUint8Array(index: number, length: number): Promise<Uint8Array> {
    if (length > READ_LIMIT) throw new ArchiveError("its directory is far too large for a bundle", false);
    return super.readUint8Array(index, length);
  }
}

/**
 * The files of a zip, in the order of its directory. An archive that two programs could read in two ways is refused: files of
 * the same name, data before or behind it, headers that contradict the directory, files that share their data.
 *
 * @throws ArchiveError
 */
export async function openArchive(blob: Blob): Promise<readonly ArchivedFile[]> {
  const reader = new ZipReader(new CappedReader(blob), {
    strictness: "strict",
    checkCrc32: true,
    checkOverlappingEntry: true,
  });
  const files: ArchivedFile[] = [];
  try {
    for await (const entry of reader.getEntriesGenerator()) {
      if (files.length >= MOST_FILES)
        throw new ArchiveError("it holds far too many files for a bundle", false);
      if (entry.directory || entry.encrypted) {
        throw new ArchiveError(`it holds ${shown(entry.filename)}, which is no plain file`, false);
      }
      files.push({ name: entry.filename, chunks: () => unpack(entry) });
    }
    if (reader.comment.length > 0) throw new ArchiveError("it bears a comment", false);
  } catch (error) {
    if (error instanceof ArchiveError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    const isIncomplete = reason === ERR_EOCDR_NOT_FOUND || reason === ERR_BAD_FORMAT;
    throw new ArchiveError(`its directory cannot be read: ${reason}`, isIncomplete);
  }
  return files;
}

async function* unpack(entry: FileEntry): AsyncGenerator<Uint8Array, void> {
  const pipe = new TransformStream<Uint8Array, Uint8Array>();
  const reader = pipe.readable.getReader();
  let failure: unknown;
  const unpacking = entry.getData(pipe.writable).catch((error: unknown) => {
    failure = error;
    // What reads gets to know of it here, also where no byte was written.
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

/** A name from an archive may be anything. */
export function shown(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
}
