/**
 * Archives of more than four gigabytes, whose sizes are in zip64 records. They are sparse files, of which only the
 * records are read.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readDirectory } from "../../../../../src/ledger/verify/bundle/archive/directory.ts";
import { ArchiveError } from "../../../../../src/ledger/verify/bundle/archive/error.ts";
import { checkLayout } from "../../../../../src/ledger/verify/bundle/archive/layout.ts";
import { bytesOf, extraField } from "./zip-maker.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const FULL = 0xffffffff;
const PACKED = 5_000_000_000;
const SIZE = 5_500_000_000;
const SMALL = 7;

/** The false parts of the records. */
interface Lies {
  readonly wide?: readonly number[];
  readonly offset?: number;
  readonly descriptor?: number;
  readonly locator?: number;
  readonly disks?: number;
  readonly oldCount?: number;
  readonly oldStart?: number;
  readonly count?: number;
  readonly start?: number;
  readonly recordSize?: number;
}

/** Two files as a gateway writes them, the first of five gigabytes. */
function large(lies: Lies = {}): Blob {
  const path = join(folder, "large.zip");
  const file = openSync(path, "w");
  let at = 0;
  const put = (bytes: Uint8Array) => {
    writeSync(file, bytes, 0, bytes.length, at);
    at += bytes.length;
  };
  const local = (name: string) =>
    Buffer.concat([
      bytesOf([
        [4, 0x04034b50],
        [2, 45],
        [2, 8],
        [2, 8],
        [4, 0],
        [4, 0],
        [4, FULL],
        [4, FULL],
      ]),
      bytesOf([
        [2, name.length],
        [2, 20],
      ]),
      Buffer.from(name),
      extraField(1, new Uint8Array(16)),
    ]);
  const central = (name: string, packed: number, size: number, offset: number, extra: Uint8Array) =>
    Buffer.concat([
      bytesOf([
        [4, 0x02014b50],
        [2, 0x0300],
        [2, 45],
        [2, 8],
        [2, 8],
        [4, 0],
        [4, 1],
        [4, packed],
        [4, size],
      ]),
      bytesOf([
        [2, name.length],
        [2, extra.length],
        [2, 0],
        [2, 0],
        [2, 0],
        [4, 0],
        [4, offset],
      ]),
      Buffer.from(name),
      extra,
    ]);
  put(local("a.txt"));
  at += PACKED;
  put(
    bytesOf([
      [4, 0x08074b50],
      [4, 1],
      [8, lies.descriptor ?? PACKED],
      [8, SIZE],
    ]),
  );
  const second = at;
  put(local("b.txt"));
  at += SMALL;
  put(
    bytesOf([
      [4, 0x08074b50],
      [4, 1],
      [8, SMALL],
      [8, SMALL],
    ]),
  );
  const start = at;
  const wide = (numbers: readonly number[]) =>
    extraField(1, bytesOf(numbers.map((number) => [8, number] as const)));
  put(central("a.txt", FULL, FULL, 0, wide(lies.wide ?? [SIZE, PACKED])));
  put(central("b.txt", SMALL, SMALL, FULL, wide([lies.offset ?? second])));
  const length = at - start;
  const endAt = at;
  const count = lies.count ?? 2;
  put(
    bytesOf([
      [4, 0x06064b50],
      [8, lies.recordSize ?? 44],
      [2, 45],
      [2, 45],
      [4, 0],
      [4, 0],
    ]),
  );
  put(
    bytesOf([
      [8, count],
      [8, count],
      [8, length],
      [8, lies.start ?? start],
    ]),
  );
  put(
    bytesOf([
      [4, 0x07064b50],
      [4, 0],
      [8, lies.locator ?? endAt],
      [4, lies.disks ?? 1],
    ]),
  );
  const oldCount = lies.oldCount ?? 0xffff;
  put(
    bytesOf([
      [4, 0x06054b50],
      [2, 0xffff],
      [2, 0xffff],
      [2, oldCount],
      [2, oldCount],
      [4, FULL],
    ]),
  );
  put(
    bytesOf([
      [4, lies.oldStart ?? FULL],
      [2, 0],
    ]),
  );
  ftruncateSync(file, at);
  closeSync(file);
  return Bun.file(path);
}

async function read(archive: Blob): Promise<readonly string[]> {
  const directory = await readDirectory(archive);
  await checkLayout(archive, directory);
  return directory.records.map(({ name, size }) => `${name} ${size}`);
}

test("one of five gigabytes is read", async () => {
  expect(await read(large())).toEqual([`a.txt ${SIZE}`, `b.txt ${SMALL}`]);
});

describe("is refused with", () => {
  test.each<readonly [string, Lies]>([
    ["one number too few", { wide: [SIZE] }],
    ["one number too many", { wide: [SIZE, PACKED, 0] }],
    ["numbers in another order", { wide: [PACKED, SIZE] }],
    ["a number that fits without zip64", { wide: [SIZE, 7] }],
    ["an impossible number", { wide: [SIZE, Number.MAX_SAFE_INTEGER + 1] }],
    ["an offset that fits without zip64", { offset: 0 }],
    ["an offset elsewhere", { offset: PACKED }],
    ["another size after the file", { descriptor: PACKED - 1 }],
    ["a locator that points elsewhere", { locator: 0 }],
    ["several disks", { disks: 2 }],
    ["another number of files in the old record", { oldCount: 2 }],
    ["another directory in the old record", { oldStart: 5 }],
    ["another number of files", { count: 1 }],
    ["another directory", { start: 5 }],
    ["an extensible record", { recordSize: 60 }],
  ])("%s", async (_, lies) => {
    await expect(read(large(lies))).rejects.toBeInstanceOf(ArchiveError);
  });
});
