import { DEFLATED, type Directory, type DirectoryRecord, STORED } from "./directory.ts";
import { ArchiveError, shown } from "./error.ts";
import { Bytes, type ExtraFields, readExtraFields, ZIP64_FROM } from "./records.ts";

const LOCAL = 0x04034b50;
const LOCAL_BYTES = 30;
const DESCRIPTOR = 0x08074b50;
const DESCRIPTOR_BYTES = 16;
const ZIP64_DESCRIPTOR_BYTES = 24;
/** Position, in the fields that both headers share, of CRC, sizes and the length of the name. */
const SUMS = { start: 10, length: 12 } as const;
const NAME_LENGTH = { start: 22, length: 2 } as const;
const NOTHING = "00".repeat(4);
const FULL = "ff".repeat(4);

/**
 * Checks that an archive can be read in only one way. Some programs use the directory at its end, others the header
 * before each file, and others search for headers. So headers and data must be contiguous from the first byte to the
 * directory, in the directory's order, and agree with it.
 *
 * @throws ArchiveError
 */
export async function checkLayout(archive: Blob, { records, start }: Directory): Promise<void> {
  let at = 0;
  for (const record of records) {
    if (record.offset !== at) {
      throw new ArchiveError(`there are bytes before ${shown(record.name)}, or it overlaps another file`);
    }
    at = await checkFile(archive, record);
  }
  if (at !== start) throw new ArchiveError("there are bytes between its files and its directory");
}

/** @returns the offset after the file's last byte */
async function checkFile(archive: Blob, record: DirectoryRecord): Promise<number> {
  const { name, offset, method, compressedSize, size, hasDescriptor, repeated, time } = record;
  const head = await Bytes.of(archive, offset, LOCAL_BYTES);
  const extraBytes = head.uint16(28);
  const rest = await Bytes.of(archive, offset + LOCAL_BYTES, head.uint16(26) + extraBytes);
  const extra = readExtraFields(rest.part(head.uint16(26), extraBytes), name);
  const local = head.part(4, 24);
  const isSame =
    head.uint32(0) === LOCAL &&
    same(local, repeated, { start: 0, length: SUMS.start }) &&
    same(local, repeated, NAME_LENGTH) &&
    rest.part(0, head.uint16(26)).text() === name &&
    extra.time === time;
  if (!isSame) throw contradiction(name);
  if (method === STORED && compressedSize !== size) throw contradiction(name);
  const end = offset + LOCAL_BYTES + rest.length + compressedSize;
  if (hasDescriptor) return checkDescriptor(archive, record, local, extra, end);
  if (
    !same(local, repeated, SUMS) ||
    extra.zip64 !== undefined ||
    Math.max(size, compressedSize) >= ZIP64_FROM
  ) {
    throw contradiction(name);
  }
  return end;
}

/**
 * Checks the CRC and sizes after the data, where a streaming writer has to put them. Only the compressed data itself
 * shows where it ends, so it must be deflated.
 */
async function checkDescriptor(
  archive: Blob,
  { name, method, crc, compressedSize, size }: DirectoryRecord,
  local: Bytes,
  { zip64 }: ExtraFields,
  at: number,
): Promise<number> {
  const isWide = zip64 !== undefined;
  const unknown = isWide ? FULL : NOTHING;
  const isLeftOpen =
    local.part(SUMS.start, SUMS.length).hex() === NOTHING + unknown + unknown &&
    (zip64 === undefined || zip64.hex() === "00".repeat(16));
  if (method !== DEFLATED || !isLeftOpen) throw contradiction(name);
  const length = isWide ? ZIP64_DESCRIPTOR_BYTES : DESCRIPTOR_BYTES;
  const found = await Bytes.of(archive, at, length);
  const sizes = isWide ? [found.uint64(8), found.uint64(16)] : [found.uint32(8), found.uint32(12)];
  const isRight =
    found.uint32(0) === DESCRIPTOR &&
    found.uint32(4) === crc &&
    sizes[0] === compressedSize &&
    sizes[1] === size;
  if (!isRight) throw contradiction(name);
  return at + length;
}

function same(
  a: Bytes,
  b: Bytes,
  { start, length }: { readonly start: number; readonly length: number },
): boolean {
  return a.part(start, length).hex() === b.part(start, length).hex();
}

function contradiction(name: string): ArchiveError {
  return new ArchiveError(`the records before or after ${shown(name)} contradict the directory`);
}
