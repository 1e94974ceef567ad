import { crc32, deflateRawSync } from "node:zlib";

/** Headers of one file. Whatever is omitted is as an honest writer makes it. */
export interface FileParts {
  readonly name: string;
  readonly data: Uint8Array;
  readonly method?: number;
  readonly flags?: number;
  /** The compressed bytes. Default: deflated, or the data itself if `method` is 0. */
  readonly packed?: Uint8Array;
  /** Fields in which the local header differs from the directory. */
  readonly local?: Partial<Fields> & { readonly name?: string; readonly extra?: Uint8Array };
  /** Fields of the directory. */
  readonly central?: Partial<Fields> & {
    readonly name?: string;
    readonly extra?: Uint8Array;
    readonly comment?: string;
    readonly offset?: number;
    readonly attributes?: number;
    readonly disk?: number;
  };
  /** Bytes after the data, such as a descriptor. */
  readonly behind?: Uint8Array;
  /** Bytes before the local header. */
  readonly before?: Uint8Array;
  /** Whether the file has no local header, or is not in the directory. */
  readonly only?: "local" | "central";
}

interface Fields {
  readonly version: number;
  readonly flags: number;
  readonly method: number;
  readonly time: number;
  readonly crc: number;
  readonly packedSize: number;
  readonly size: number;
}

export interface ArchiveParts {
  readonly before?: Uint8Array;
  /** Bytes between the last file and the directory. */
  readonly gap?: Uint8Array;
  /** Bytes between the directory and the end record. */
  readonly behindDirectory?: Uint8Array;
  readonly comment?: Uint8Array;
  readonly behind?: Uint8Array;
  readonly end?: {
    readonly disk?: number;
    readonly diskCount?: number;
    readonly count?: number;
    readonly length?: number;
    readonly start?: number;
  };
}

const DOS_TIME = 0x5c241482;

/** Writes a zip byte by byte, so that every record can be false. */
export function makeZip(files: readonly FileParts[], archive: ArchiveParts = {}): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  let at = 0;
  const put = (bytes: Uint8Array = new Uint8Array(0)) => {
    parts.push(bytes);
    at += bytes.length;
  };
  const records: Uint8Array[] = [];
  put(archive.before);
  for (const file of files) {
    const { local, central, only, before, behind } = file;
    const packed = file.packed ?? (file.method === 0 ? file.data : deflateRawSync(file.data));
    put(before);
    const offset = central?.offset ?? at;
    if (only !== "central") {
      put(localHeader(file, packed, local));
      put(packed);
      put(behind);
    }
    if (only !== "local") records.push(centralRecord(file, packed, offset));
  }
  put(archive.gap);
  const start = at;
  for (const record of records) put(record);
  const length = at - start;
  put(archive.behindDirectory);
  const end = { disk: 0, diskCount: records.length, count: records.length, length, start, ...archive.end };
  put(
    bytesOf([
      [4, 0x06054b50],
      [2, end.disk],
      [2, end.disk],
      [2, end.diskCount],
      [2, end.count],
      [4, end.length],
      [4, end.start],
      [2, archive.comment?.length ?? 0],
    ]),
  );
  put(archive.comment);
  put(archive.behind);
  return new Uint8Array(Buffer.concat(parts));
}

function fieldsOf({ data, method = 8, flags = 0x800 }: FileParts, packed: Uint8Array): Fields {
  const crc = crc32(data) >>> 0;
  return { version: 20, flags, method, time: DOS_TIME, crc, packedSize: packed.length, size: data.length };
}

function localHeader(file: FileParts, packed: Uint8Array, lies: FileParts["local"] = {}): Uint8Array {
  const { name = file.name, extra = new Uint8Array(0) } = lies;
  const fields = { ...fieldsOf(file, packed), ...lies };
  const head = bytesOf([
    [4, 0x04034b50],
    ...repeated(fields),
    [2, Buffer.byteLength(name)],
    [2, extra.length],
  ]);
  return Buffer.concat([head, Buffer.from(name), extra]);
}

function centralRecord(file: FileParts, packed: Uint8Array, offset: number): Uint8Array {
  const lies = file.central ?? {};
  const { name = file.name, extra = new Uint8Array(0), comment = "", attributes = 0, disk = 0 } = lies;
  const fields = { ...fieldsOf(file, packed), ...lies };
  const head = bytesOf([
    [4, 0x02014b50],
    [2, 0x0314],
    ...repeated(fields),
    [2, Buffer.byteLength(name)],
    [2, extra.length],
    [2, comment.length],
    [2, disk],
    [2, 0],
    [4, attributes],
    [4, offset],
  ]);
  return Buffer.concat([head, Buffer.from(name), extra, Buffer.from(comment)]);
}

type Numbers = readonly (readonly [bytes: 2 | 4 | 8, value: number])[];

function repeated({ version, flags, method, time, crc, packedSize, size }: Fields): Numbers {
  return [
    [2, version],
    [2, flags],
    [2, method],
    [4, time],
    [4, crc],
    [4, packedSize],
    [4, size],
  ];
}

/** Numbers of the given lengths in bytes, each with its lowest byte first. */
export function bytesOf(numbers: Numbers): Uint8Array {
  return Buffer.concat(
    numbers.map(([length, value]) => {
      const buffer = Buffer.alloc(8);
      buffer.writeBigUInt64LE(BigInt(value));
      return buffer.subarray(0, length);
    }),
  );
}

/** An extra field. */
export function extraField(id: number, content: Uint8Array): Uint8Array {
  return Buffer.concat([
    bytesOf([
      [2, id],
      [2, content.length],
    ]),
    content,
  ]);
}

/** The descriptor that follows a file's data. */
export function descriptorOf(
  { data }: Pick<FileParts, "data">,
  packed: Uint8Array,
  width: 4 | 8 = 4,
): Uint8Array {
  return bytesOf([
    [4, 0x08074b50],
    [4, crc32(data) >>> 0],
    [width, packed.length],
    [width, data.length],
  ]);
}

/** A file whose sizes come after its data, as a streaming writer makes it; with `isWide`, as a gateway does. */
export function streamedFile(name: string, data: Uint8Array, isWide = false): FileParts {
  const packed = deflateRawSync(data);
  const flags = 0x808;
  const behind = descriptorOf({ data }, packed, isWide ? 8 : 4);
  const unknown = isWide ? 0xffffffff : 0;
  const local = { crc: 0, packedSize: unknown, size: unknown };
  const extra = isWide ? extraField(1, new Uint8Array(16)) : new Uint8Array(0);
  return { name, data, packed, flags, behind, local: { ...local, extra } };
}
