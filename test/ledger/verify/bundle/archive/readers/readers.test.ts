/**
 * Other programs read archives that passed verification. A separate part of `scripts/test`, because it needs
 * Info-ZIP, Python and Java.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { type BundleBench, openBench, story } from "../../../../article14/support.ts";
import { Unpacked, verify } from "../../support.ts";
import { extraField, type FileParts, makeZip, streamedFile } from "../zip-maker.ts";
import { READERS, type Reading } from "./programs.ts";

setDefaultTimeout(120_000);

let bench: BundleBench;
let folder: string;
let genuine: Uint8Array<ArrayBuffer>;
let files: readonly FileParts[];
let expected: Reading;
/** Changed archives that still verify. */
let holding: readonly Uint8Array[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  bench = await openBench();
  await story(bench, 2);
  const blob = await bench.zip();
  genuine = await blob.bytes();
  const bundle = await Unpacked.of(blob);
  files = Object.entries(bundle.files).map(([name, data]) => ({ name, data }));
  expected = files.map(({ name, data }) => [name, new Bun.CryptoHasher("sha256").update(data).digest("hex")]);
  const changed = changedArchives();
  holding = await thoseThatHold(changed);
  expect(holding.length).toBeGreaterThan(10);
  expect(holding.length).toBeLessThan(changed.length / 2);
});
afterAll(async () => {
  await bench.close();
  rmSync(folder, { recursive: true });
});

async function stored(archives: readonly Uint8Array[], name: string): Promise<string[]> {
  const paths = archives.map((_, index) => join(folder, `${name}-${index}.zip`));
  await Promise.all(archives.map((archive, index) => Bun.write(paths[index] ?? "", archive)));
  return paths;
}

describe.each(READERS)("$name", ({ name, read }) => {
  test("finds in a bundle what was verified", async () => {
    const made = [
      genuine,
      makeZip(files),
      makeZip(files.map((file) => ({ ...file, method: 0 }))),
      makeZip(files.map((file) => streamedFile(file.name, file.data))),
    ];
    for (const archive of made) expect((await verify(new Blob([archive]))).verdict).toBe("holds");
    const [streamed, ...others] = await read(await stored(made, name.replace(/\W+/g, "-")));
    expect(others).toEqual(others.map(() => expected));
    // Java before 20 refuses 64-bit sizes after a small file; it can read such a file only through the directory.
    if (streamed !== null || name !== "Java, stream") expect(streamed).toEqual(expected);
  });

  test("finds the verified files in every archive that passes", async () => {
    const readings = await read(await stored(holding, `${name.replace(/\W+/g, "-")}-changed`));
    for (const reading of readings) if (reading !== null) expect<Reading>(reading).toEqual(expected);
  });
});

test("a refused archive is read differently by programs that accept it", async () => {
  const other = Buffer.from(`${files[0]?.data}`.replaceAll("1", "2"));
  const ambiguous = makeZip([...files, { name: "entries.ndjson", data: other, only: "local" }]);
  expect((await verify(new Blob([ambiguous]))).verdict).toBe("tampered");
  const paths = await stored([ambiguous], "ambiguous");
  const readings = new Set<string>();
  for (const { read } of READERS)
    for (const reading of await read(paths)) readings.add(JSON.stringify(reading));
  readings.delete("null");
  expect(readings.size).toBeGreaterThan(1);
});

/** False statements about a file, some of which are harmless. */
const LIE = fc.oneof(
  field("local"),
  field("central"),
  fc.record({ behind: fc.uint8Array({ minLength: 1, maxLength: 24 }) }),
  fc.record({ before: fc.uint8Array({ minLength: 1, maxLength: 40 }) }),
  fc.record({ only: fc.constantFrom("local" as const, "central" as const) }),
  fc.record({ method: fc.constantFrom(0, 8, 9) }),
  fc.record({ flags: fc.integer({ min: 0, max: 0xffff }) }),
  fc.record({ central: fc.record({ attributes: fc.integer({ min: 0, max: 0xffffffff }) }) }),
  fc.record({ central: fc.record({ offset: fc.integer({ min: 0, max: 100_000 }) }) }),
  fc.constant({}),
);

function field(side: "local" | "central") {
  const extra = fc
    .record({ id: fc.constantFrom(1, 0x5455, 0x7075, 0x9999), content: fc.uint8Array({ maxLength: 24 }) })
    .map(({ id, content }) => extraField(id, content));
  const numbers = fc.record(
    {
      version: fc.integer({ min: 0, max: 70 }),
      flags: fc.constantFrom(0, 2, 8, 0x800, 0x808),
      method: fc.constantFrom(0, 8),
      time: fc.integer({ min: 0, max: 0xffffffff }),
      crc: fc.integer({ min: 0, max: 0xffffffff }),
      size: fc.constantFrom(0, 10, 0xffffffff),
      packedSize: fc.constantFrom(0, 10, 0xffffffff),
      extra,
    },
    { requiredKeys: [] },
  );
  return numbers.map((lies) => ({ [side]: lies }));
}

/**
 * Archives with a false statement or a harmless difference in one of their files, and the genuine archive with one
 * bit flipped.
 */
function changedArchives(): Uint8Array<ArrayBuffer>[] {
  const place = fc.record({ file: fc.nat(files.length - 1), isStreamed: fc.boolean(), lie: LIE });
  const made = fc.sample(place, { numRuns: 120, seed: 7 }).map(({ file: at, isStreamed, lie }) =>
    makeZip(
      files.map((file, index) => ({
        ...(isStreamed ? streamedFile(file.name, file.data, true) : file),
        ...(index === at ? lie : {}),
      })),
    ),
  );
  const directory = Buffer.from(genuine).readUInt32LE(genuine.length - 6);
  const flips = fc.record({ at: fc.integer({ min: directory, max: genuine.length - 1 }), bit: fc.nat(7) });
  const flipped = fc.sample(flips, { numRuns: 120, seed: 7 }).map(({ at, bit }) => {
    const archive = new Uint8Array(genuine);
    archive[at] = (archive[at] ?? 0) ^ (1 << bit);
    return archive;
  });
  return [...made, ...flipped];
}

async function thoseThatHold(archives: readonly Uint8Array<ArrayBuffer>[]): Promise<Uint8Array[]> {
  const verdicts = await Promise.all(
    archives.map(async (archive) => (await verify(new Blob([archive]))).verdict),
  );
  return archives.filter((_, index) => verdicts[index] === "holds");
}
