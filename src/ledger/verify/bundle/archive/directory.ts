import { ArchiveError, shown } from "./error.ts";
import { Bytes, readExtraFields, ZIP64_FROM } from "./records.ts";

/** A file's record in the central directory. */
export interface DirectoryRecord {
  readonly name: string;
  readonly method: number;
  /** Whether CRC and sizes follow the data, in a descriptor. */
  readonly hasDescriptor: boolean;
  readonly crc: number;
  readonly compressedSize: number;
  readonly size: number;
  /** Offset of the file's local header. */
  readonly offset: number;
  /** The fields that the local header repeats, from the version to the length of the name. */
  readonly repeated: Bytes;
  /** Hex of the extra field with the modification time, if present. */
  readonly time: string | undefined;
}

export interface Directory {
  readonly records: readonly DirectoryRecord[];
  /** Offset of the directory. */
  readonly start: number;
}

export const STORED = 0;
export const DEFLATED = 8;

/** Maximum number of files in an archive; a bundle has ten. */
export const MOST_FILES = 64;
/** Size limit of a directory with that many files, if no record has more fields than a gateway writes. */
const MOST_BYTES = 16_384;

const RECORD = 0x02014b50;
const RECORD_BYTES = 46;
const END = 0x06054b50;
const END_BYTES = 22;
const ZIP64_LOCATOR = 0x07064b50;
const ZIP64_LOCATOR_BYTES = 20;
const ZIP64_END = 0x06064b50;
const ZIP64_END_BYTES = 56;
/** The version with zip64. Later ones add other compression methods and encryption. */
const NEWEST_VERSION = 45;
const HAS_DESCRIPTOR = 1 << 3;
const IS_UTF8 = 1 << 11;
/** Flag bits for the compression level, which is irrelevant for unpacking. */
const LEVEL = 3 << 1;
/** Names of plain files that mean the same to every program and file system. */
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$/;
const FILE_TYPE = 0o170000;
const REGULAR_FILE = 0o100000;
/** MS-DOS attributes of a directory or a volume label. */
const NOT_A_FILE = 0x18;

/**
 * Reads the central directory at the end of an archive.
 * @throws ArchiveError for anything that programs could read differently
 */
export async function readDirectory(archive: Blob): Promise<Directory> {
  const { count, start, length } = await readEnd(archive);
  if (count > MOST_FILES || length > MOST_BYTES) {
    throw new ArchiveError("its directory is far too large for a bundle");
  }
  const bytes = await Bytes.of(archive, start, length);
  const records: DirectoryRecord[] = [];
  const names = new Set<string>();
  let at = 0;
  for (; records.length < count; ) {
    const { record, end } = readRecord(bytes, at);
    // Many file systems do not distinguish upper and lower case.
    const folded = record.name.toLowerCase();
    if (names.has(folded)) throw new ArchiveError(`it contains ${shown(record.name)} twice`);
    names.add(folded);
    records.push(record);
    at = end;
  }
  if (at !== length) throw new ArchiveError("there are bytes after its directory");
  return { records, start };
}

interface End {
  readonly count: number;
  readonly start: number;
  readonly length: number;
}

async function readEnd(archive: Blob): Promise<End> {
  const at = archive.size - END_BYTES;
  const end = await Bytes.of(archive, at, END_BYTES);
  if (end.uint32(0) !== END || end.uint16(20) !== 0) throw new ArchiveError("it does not end as a zip does");
  const locatorAt = at - ZIP64_LOCATOR_BYTES;
  const locator = locatorAt < 0 ? undefined : await Bytes.of(archive, locatorAt, ZIP64_LOCATOR_BYTES);
  if (locator?.uint32(0) === ZIP64_LOCATOR) return readZip64End(archive, end, locator, locatorAt);
  const [disk, startDisk, diskCount, count] = [end.uint16(4), end.uint16(6), end.uint16(8), end.uint16(10)];
  const [length, start] = [end.uint32(12), end.uint32(16)];
  if (disk !== 0 || startDisk !== 0 || diskCount !== count) throw split();
  if (start + length !== at) throw new ArchiveError("its directory is not where it ends");
  return { count, start, length };
}

/** Reads the end record of an archive of four gigabytes or more. */
async function readZip64End(archive: Blob, end: Bytes, locator: Bytes, locatorAt: number): Promise<End> {
  const at = locatorAt - ZIP64_END_BYTES;
  const record = await Bytes.of(archive, at, ZIP64_END_BYTES);
  if (record.uint32(0) !== ZIP64_END || record.uint64(4) !== ZIP64_END_BYTES - 12) {
    throw new ArchiveError("its zip64 records are not those that a gateway writes");
  }
  if (locator.uint64(8) !== at || locator.uint32(4) !== 0 || locator.uint32(16) !== 1) throw split();
  const [disk, startDisk] = [record.uint32(16), record.uint32(20)];
  const [diskCount, count] = [record.uint64(24), record.uint64(32)];
  const [length, start] = [record.uint64(40), record.uint64(48)];
  if (disk !== 0 || startDisk !== 0 || diskCount !== count) throw split();
  if (start + length !== at) throw new ArchiveError("its directory is not where it ends");
  // Every field of the older record must refer to the newer one, so none can contradict it.
  if (end.part(4, 16).hex() !== "ff".repeat(16)) {
    throw new ArchiveError("its two end records contradict each other");
  }
  return { count, start, length };
}

function split(): ArchiveError {
  return new ArchiveError("it claims to be one part of several");
}

function readRecord(bytes: Bytes, at: number): { readonly record: DirectoryRecord; readonly end: number } {
  const head = bytes.part(at, RECORD_BYTES);
  if (head.uint32(0) !== RECORD) throw new ArchiveError("its directory is damaged");
  const nameBytes = head.uint16(28);
  const extraBytes = head.uint16(30);
  const name = bytes.part(at + RECORD_BYTES, nameBytes).text();
  if (!NAME.test(name))
    throw new ArchiveError(`it contains ${shown(name)}, which is not the name of a plain file`);
  const { zip64, time } = readExtraFields(bytes.part(at + RECORD_BYTES + nameBytes, extraBytes), name);
  const flags = head.uint16(8);
  const method = head.uint16(10);
  checkKind(head, name);
  if (method !== STORED && method !== DEFLATED) {
    throw new ArchiveError(`${shown(name)} is compressed with a method that not every program supports`);
  }
  const allowed = HAS_DESCRIPTOR | IS_UTF8 | (method === DEFLATED ? LEVEL : 0);
  if ((flags & ~allowed) !== 0) {
    throw new ArchiveError(`${shown(name)} is encrypted, or has flags that no gateway sets`);
  }
  const [size = 0, compressedSize = 0, offset = 0] = wideNumbers(
    [head.uint32(24), head.uint32(20), head.uint32(42)],
    zip64,
    name,
  );
  const record: DirectoryRecord = {
    ...{ name, method, compressedSize, size, offset, time },
    hasDescriptor: (flags & HAS_DESCRIPTOR) !== 0,
    crc: head.uint32(16),
    repeated: head.part(6, 24),
  };
  return { record, end: at + RECORD_BYTES + nameBytes + extraBytes };
}

/** @throws ArchiveError if it is not a plain file */
function checkKind(head: Bytes, name: string): void {
  const attributes = head.uint32(38);
  const type = (attributes >>> 16) & FILE_TYPE;
  if ((type !== 0 && type !== REGULAR_FILE) || (attributes & NOT_A_FILE) !== 0) {
    throw new ArchiveError(`it contains ${shown(name)}, which is not a plain file`);
  }
  const [version, commentBytes, disk] = [head.uint16(6), head.uint16(32), head.uint16(34)];
  if (version > NEWEST_VERSION) throw new ArchiveError(`${shown(name)} needs a newer program to unpack it`);
  if (commentBytes !== 0) throw new ArchiveError(`${shown(name)} has a comment`);
  if (disk !== 0) throw split();
}

/** 32-bit numbers, or the values from the zip64 field for those that do not fit: exactly those, in this order. */
function wideNumbers(numbers: readonly number[], zip64: Bytes | undefined, name: string): number[] {
  let at = 0;
  const wide = numbers.map((number) => {
    if (number !== ZIP64_FROM) return number;
    const value = zip64?.part(at, 8).uint64(0) ?? 0;
    at += 8;
    if (value < ZIP64_FROM) at = Number.NaN;
    return value;
  });
  const expected = at === 0 ? undefined : at;
  if (zip64?.length !== expected)
    throw new ArchiveError(`${shown(name)} has sizes that contradict each other`);
  return wide;
}
