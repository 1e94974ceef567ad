/**
 * Archives that two programs could read differently. An auditor's other tools must not show a different bundle from
 * the verified one.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { crc32, deflateRawSync } from "node:zlib";
import { type BundleBench, openBench, story } from "../../../article14/support.ts";
import { codes, Unpacked, verify } from "../support.ts";
import {
  type ArchiveParts,
  bytesOf,
  extraField,
  type FileParts,
  makeZip,
  streamedFile,
} from "./zip-maker.ts";

let bench: BundleBench;
let bundle: Unpacked;
let files: readonly FileParts[];

beforeAll(async () => {
  bench = await openBench();
  await story(bench, 3);
  bundle = await Unpacked.of(await bench.zip());
  files = Object.entries(bundle.files).map(([name, data]) => ({ name, data }));
});
afterAll(() => bench.close());

const ENTRIES = "entries.ndjson";

/** The bundle with one of its files changed. */
function withOther(change: (file: FileParts) => Partial<FileParts>, name = ENTRIES): FileParts[] {
  return files.map((file) => (file.name === name ? { ...file, ...change(file) } : file));
}
const other = () => Buffer.from(bundle.text(ENTRIES).replaceAll("oversight.deny", "oversight.nope"));
/** A complete bundle with other entries. */
const otherBundle = () => makeZip(withOther(() => ({ data: other() })));
const text = (content: string) => new Uint8Array(Buffer.from(content));
const packedOf = ({ data }: FileParts) => deflateRawSync(data);
/** The extra field in which Info-ZIP stores a file's Unicode name. */
function unicodePath(name: string, of: string): Uint8Array {
  const content = Buffer.concat([bytesOf([[4, crc32(Buffer.from(of)) >>> 0]]), Buffer.from(name)]);
  return extraField(0x7075, Buffer.concat([Buffer.from([1]), content]));
}
const time = (seconds: number) =>
  extraField(0x5455, Buffer.concat([Buffer.from([1]), bytesOf([[4, seconds]])]));
const zip64 = (...sizes: number[]) => extraField(1, bytesOf(sizes.map((size) => [8, size] as const)));

describe("archives that all programs read the same are accepted:", () => {
  test.each<readonly [string, () => Uint8Array<ArrayBuffer>]>([
    ["files that are deflated", () => makeZip(files)],
    ["files that are stored", () => makeZip(files.map((file) => ({ ...file, method: 0 })))],
    [
      "files whose sizes come after them",
      () => makeZip(files.map(({ name, data }) => streamedFile(name, data))),
    ],
    [
      "files as a gateway writes them",
      () => makeZip(files.map(({ name, data }) => streamedFile(name, data, true))),
    ],
    [
      "files with a time in UTC",
      () =>
        makeZip(files.map((file) => ({ ...file, local: { extra: time(5) }, central: { extra: time(5) } }))),
    ],
    [
      "a plain file's attributes",
      () => makeZip(withOther(() => ({ central: { attributes: 0o100644 * 65_536 } }))),
    ],
  ])("%s", async (_, make) => {
    const verification = await verify(new Blob([make()]));
    expect([verification.verdict, codes(verification)]).toEqual(["holds", []]);
  });
});

type Ambiguity = readonly [string, () => Uint8Array<ArrayBuffer>];
const of = (change: (file: FileParts) => Partial<FileParts>) => () => makeZip(withOther(change));
const around = (archive: () => ArchiveParts) => () => makeZip(files, archive());

const HIDDEN: readonly Ambiguity[] = [
  [
    "a file between two others that the directory does not name",
    () => makeZip(files.toSpliced(1, 0, { name: ENTRIES, data: other(), only: "local" })),
  ],
  [
    "a first file that the directory does not name",
    () => makeZip([{ name: ENTRIES, data: other(), only: "local" }, ...files]),
  ],
  [
    "a last file that the directory does not name",
    () => makeZip([...files, { name: ENTRIES, data: other(), only: "local" }]),
  ],
  ["bytes between two files", of(() => ({ before: text("more") }))],
  ["bytes after a file", of(() => ({ behind: text("more") }))],
  ["bytes between the files and the directory", around(() => ({ gap: text("more") }))],
  ["bytes between the directory and the end", around(() => ({ behindDirectory: text("more") }))],
  ["bytes before the first file", around(() => ({ before: text("#!/bin/sh\n") }))],
  ["bytes after the end", around(() => ({ behind: text("more") }))],
  ["another archive before it", around(() => ({ before: otherBundle() }))],
  ["another archive after it", around(() => ({ behind: otherBundle() }))],
  ["a comment", around(() => ({ comment: text("hello") }))],
  ["a comment that is an archive", around(() => ({ comment: otherBundle().slice(-22) }))],
  ["a comment of one file", of(() => ({ central: { comment: "x" } }))],
  [
    "two files that share one's bytes",
    () => makeZip([...files, { ...first(), name: "two.txt", only: "central", central: { offset: 0 } }]),
  ],
  ["files in another order than the directory's", () => reordered()],
];

const CONTRADICTING: readonly Ambiguity[] = [
  ["another name before the file", of(() => ({ local: { name: "entries.ndjsom" } }))],
  ["a longer name before the file", of(() => ({ local: { name: "entries.ndjson.txt" } }))],
  ["another size before the file", of(() => ({ local: { size: 10 } }))],
  ["another compressed size before the file", of(() => ({ local: { packedSize: 10 } }))],
  ["another CRC before the file", of(() => ({ local: { crc: 1 } }))],
  ["another method before the file", of(() => ({ local: { method: 0 } }))],
  ["other flags before the file", of(() => ({ local: { flags: 0 } }))],
  ["another version before the file", of(() => ({ local: { version: 10 } }))],
  ["another time before the file", of(() => ({ local: { time: 1 } }))],
  [
    "another time in UTC before the file",
    of(() => ({ local: { extra: time(1) }, central: { extra: time(2) } })),
  ],
  ["a CRC that is not the file's", of(() => ({ local: { crc: 1 }, central: { crc: 1 } }))],
  ["a size that is not the file's", of(() => ({ local: { size: 9 }, central: { size: 9 } }))],
  [
    "a stored file with two sizes",
    of(({ data }) => ({ method: 0, local: { size: 9 }, central: { size: 9 }, data })),
  ],
  ["sizes after the file that are not its own", of(streamed((s) => ({ behind: flipped(s.behind, 8) })))],
  ["a CRC after the file that is not its own", of(streamed((s) => ({ behind: flipped(s.behind, 4) })))],
  ["sizes after the file without a mark", of(streamed((s) => ({ behind: s.behind?.slice(4) ?? text("") })))],
  ["no sizes after the file, although they are announced", of(streamed(() => ({ behind: text("") })))],
  ["sizes before and after the file", of(streamed(() => ({ local: {} })))],
  ["sizes after a stored file", of(streamed(({ data }) => ({ method: 0, packed: data })))],
  ["more in the end record than in the directory", around(() => ({ end: { count: files.length + 1 } }))],
  ["less in the end record than in the directory", around(() => ({ end: { count: files.length - 1 } }))],
  ["another number of files on this disk", around(() => ({ end: { diskCount: files.length - 1 } }))],
  ["an end record of a second disk", around(() => ({ end: { disk: 1 } }))],
  ["a directory that begins elsewhere", around(() => ({ end: { start: 5 } }))],
  ["a directory of another length", around(() => ({ end: { length: 46 } }))],
  ["a file on another disk", of(() => ({ central: { disk: 1 } }))],
];

const MARKED: readonly Ambiguity[] = [
  ["an encrypted file", of(() => ({ flags: 0x801 }))],
  ["a patch", of(() => ({ flags: 0x820 }))],
  ["masked headers", of(() => ({ flags: 0x2800 }))],
  ["a file in Deflate64", of(() => ({ method: 9 }))],
  ["a file in bzip2", of(() => ({ method: 12 }))],
  ["a file in Zstandard", of(() => ({ method: 93 }))],
  ["a file that is marked as stored but deflated", of((file) => ({ method: 0, packed: packedOf(file) }))],
  ["a file that needs a later version", of(() => ({ local: { version: 63 }, central: { version: 63 } }))],
  ["a symbolic link", of(() => ({ central: { attributes: 0o120777 * 65_536 } }))],
  ["a directory by its mode", of(() => ({ central: { attributes: 0o040755 * 65_536 } }))],
  ["a directory by its attributes", of(() => ({ central: { attributes: 0x10 } }))],
  ["a volume's name", of(() => ({ central: { attributes: 0x08 } }))],
  [
    "a foreign extra field in the directory",
    of(() => ({ central: { extra: extraField(0x9999, text("abcd")) } })),
  ],
  [
    "a foreign extra field before the file",
    of(() => ({ local: { extra: extraField(0x9999, text("abcd")) } })),
  ],
  ["a broken extra field", of(() => ({ central: { extra: new Uint8Array([0x99, 0x99, 0xff, 0xff]) } }))],
  ["half of an extra field", of(() => ({ central: { extra: new Uint8Array([0x55]) } }))],
  ["a time twice", of(() => ({ central: { extra: Buffer.concat([time(1), time(2)]) } }))],
  ["a different Unicode name", of(() => named("other.txt", ENTRIES))],
  ["a Unicode name in the directory only", of(() => ({ central: named("other.txt", ENTRIES).central }))],
  ["an empty zip64 field", of(() => ({ central: { extra: zip64() } }))],
  ["an unneeded zip64 size", of(({ data }) => ({ central: { extra: zip64(data.length) } }))],
  [
    "a zip64 size that fits without it",
    of(({ data }) => ({ central: { size: 0xffffffff, extra: zip64(data.length) } })),
  ],
  [
    "a zip64 size before the file only",
    of(({ data }) => ({ local: { size: 0xffffffff, extra: zip64(data.length) } })),
  ],
];

const NAMES: readonly Ambiguity[] = [
  "entries.ndjson",
  "Entries.ndjson",
  "ENTRIES.NDJSON",
  "./entries.ndjson",
  "../entries.ndjson",
  "/entries.ndjson",
  "a/entries.ndjson",
  "a\\entries.ndjson",
  "C:entries.ndjson",
  "entries.ndjson/",
  "entries.ndjson.",
  "entries.ndjson ",
  "entries.ndjson::$DATA",
  "ENTRIE~1.NDJ",
  "entries.ndjson\0.txt",
  "entries.ndj\u017fon",
  "entries.ndjson\u200b",
  "-rf",
  "",
].map((name) => [
  `a file ${JSON.stringify(name)} beside entries.ndjson`,
  () => makeZip([...files, { name, data: other() }]),
]);

const PACKED: readonly Ambiguity[] = [
  [
    "bytes after the end of the compressed data",
    of((file) => ({ packed: Buffer.concat([packedOf(file), text("more")]) })),
  ],
  [
    "a second stream after the compressed data",
    of((file) => ({ packed: Buffer.concat([packedOf(file), deflateRawSync(other())]) })),
  ],
  [
    "another file within the compressed data, after its end, where streaming programs look",
    of((file) => {
      const streamedOne = streamedFile(file.name, file.data);
      const hidden = makeZip([{ name: "leaves.txt", data: other() }]).slice(0, -22);
      const packed = Buffer.concat([packedOf(file), streamedOne.behind ?? text(""), hidden]);
      const behind = streamedFile(file.name, file.data).behind ?? text("");
      return { ...streamedOne, packed, behind: withPackedSize(behind, packed.length) };
    }),
  ],
  ["compressed data that is cut short", of((file) => ({ packed: packedOf(file).subarray(0, -3) }))],
  [
    "a compressed size that reaches into the next file",
    of((file) => ({ central: { packedSize: packedOf(file).length + 40 } })),
  ],
];

describe.each([
  ["hides bytes:", HIDDEN],
  ["contradicts itself:", CONTRADICTING],
  ["marks its files:", MARKED],
  ["has names that mean the same on some systems:", NAMES],
  ["has compressed data with something else:", PACKED],
])("an archive is refused that %s", (_, ambiguities) => {
  test.each(ambiguities)("%s", async (_, make) => {
    const verification = await verify(new Blob([make()]));
    expect(verification.verdict).toBe("tampered");
    // Refused as an archive, or while unpacking its data, but not because of what the files contain.
    expect(["archive_changed", "file_damaged"]).toContain(verification.findings[0]?.code ?? "");
  });
});

describe("the manifest's signature is one line of canonical base64:", () => {
  test.each<readonly [string, (line: string) => string]>([
    ["without its newline", (line) => line.trimEnd()],
    ["with two newlines", (line) => `${line}\n`],
    ["after a byte order mark", (line) => `\ufeff${line}`],
    ["with a carriage return", (line) => line.replace("\n", "\r\n")],
    ["after a space", (line) => ` ${line}`],
    ["without padding", (line) => line.replaceAll("=", "")],
    ["with left-over bits", (line) => line.replace(/.==\n$/, (end) => `${nextLetter(end)}==\n`)],
    ["for addresses", (line) => line.replaceAll("+", "-").replaceAll("/", "_").replace(/^./, "_")],
    ["twice", (line) => line + line],
  ])("%s", async (_, change) => {
    const verification = await verify(bundle.copy().edit("manifest.sig", change));
    expect([verification.verdict, codes(verification)]).toEqual(["tampered", ["manifest_signature"]]);
  });
});

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The letter after a line's last one: it decodes to the same bytes, with different unused bits. */
function nextLetter(end: string): string {
  return LETTERS[(LETTERS.indexOf(end.slice(0, 1)) + 1) % LETTERS.length] ?? "";
}

function first(): FileParts {
  const [file] = files;
  if (!file) throw new Error("the bundle has no files");
  return file;
}

function named(name: string, of: string) {
  const extra = unicodePath(name, of);
  return { flags: 0, local: { extra }, central: { extra } };
}

type Change = (file: FileParts) => Partial<FileParts>;

/** Applies a change to a file whose sizes come after its data. */
function streamed(change: Change): Change {
  return ({ name, data }) => {
    const file = streamedFile(name, data);
    return { ...file, ...change(file) };
  };
}

function flipped(bytes: Uint8Array | undefined, at: number): Uint8Array {
  const copy = new Uint8Array(bytes ?? []);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

function withPackedSize(descriptor: Uint8Array, size: number): Uint8Array {
  const copy = Buffer.from(descriptor);
  copy.writeUInt32LE(size, 8);
  return copy;
}

/** The same files, but the last one comes first in the directory. */
function reordered(): Uint8Array<ArrayBuffer> {
  const last = files.at(-1) ?? first();
  const before = makeZip(files.slice(0, -1));
  const offset = Buffer.from(before).readUInt32LE(before.length - 6);
  return makeZip([
    { ...last, only: "central", central: { offset } },
    ...files.slice(0, -1),
    { ...last, only: "local" },
  ]);
}
