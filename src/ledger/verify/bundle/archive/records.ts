import { ArchiveError, shown } from "./error.ts";

/**
 * The smallest value that does not fit a zip's 32-bit fields. Such a field contains all ones, and a zip64 field the
 * value.
 */
export const ZIP64_FROM = 0xffffffff;
const ZIP64_FIELD = 0x0001;
const TIME_FIELD = 0x5455;
/** One byte of flags and four of the modification time in UTC, in seconds. */
const TIME_BYTES = 5;

/** A part of the archive's bytes. Reads little-endian numbers, as zips use. */
export class Bytes {
  readonly #view: DataView;

  private constructor(view: DataView) {
    this.#view = view;
  }

  /** @throws ArchiveError if the archive is too short */
  static async of(archive: Blob, start: number, length: number): Promise<Bytes> {
    if (start < 0 || start + length > archive.size) {
      throw new ArchiveError("a record extends past the end of the archive");
    }
    return new Bytes(new DataView(await archive.slice(start, start + length).arrayBuffer()));
  }

  get length(): number {
    return this.#view.byteLength;
  }

  uint16(at: number): number {
    return this.#view.getUint16(at, true);
  }

  uint32(at: number): number {
    return this.#view.getUint32(at, true);
  }

  /** @throws ArchiveError for a number far above any file's size */
  uint64(at: number): number {
    const value = Number(this.#view.getBigUint64(at, true));
    if (!Number.isSafeInteger(value)) throw new ArchiveError("a record states an impossible size");
    return value;
  }

  /** @throws ArchiveError if there are too few bytes */
  part(start: number, length: number): Bytes {
    if (start + length > this.length) throw new ArchiveError("a record is truncated");
    return new Bytes(new DataView(this.#view.buffer, this.#view.byteOffset + start, length));
  }

  hex(): string {
    return new Uint8Array(this.#view.buffer, this.#view.byteOffset, this.length).toHex();
  }

  /** One character per byte. */
  text(): string {
    return String.fromCharCode(...new Uint8Array(this.#view.buffer, this.#view.byteOffset, this.length));
  }
}

export interface ExtraFields {
  /** 64-bit values for the 32-bit fields that are full. */
  readonly zip64: Bytes | undefined;
  /** Hex of the modification time in UTC. */
  readonly time: string | undefined;
}

/**
 * The extra fields of a header. Only those that a gateway writes are permitted; others could rename the file or
 * change how programs unpack it.
 *
 * @throws ArchiveError
 */
export function readExtraFields(bytes: Bytes, file: string): ExtraFields {
  let zip64: Bytes | undefined;
  let time: string | undefined;
  for (let at = 0; at < bytes.length; ) {
    const head = bytes.part(at, 4);
    const field = bytes.part(at + 4, head.uint16(2));
    const isTime = head.uint16(0) === TIME_FIELD && field.length === TIME_BYTES;
    if (head.uint16(0) === ZIP64_FIELD && zip64 === undefined) zip64 = field;
    else if (isTime && time === undefined) time = field.hex();
    else throw new ArchiveError(`${shown(file)} has extra fields that no gateway writes`);
    at += 4 + field.length;
  }
  return { zip64, time };
}
