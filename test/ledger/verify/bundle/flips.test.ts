import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { unzipSync } from "fflate";
import { BUNDLE_FILES } from "../../../../src/ledger/article14/format/files.ts";
import { type BundleBench, openBench, story } from "../../article14/support.ts";
import { Unpacked, verify } from "./support.ts";

let bench: BundleBench;
let archive: Uint8Array;
let bundle: Unpacked;

beforeAll(async () => {
  bench = await openBench();
  await story(bench, 3);
  const blob = await bench.zip({ filter: { agent: "claims" } });
  archive = await blob.bytes();
  bundle = await Unpacked.of(blob);
});
afterAll(() => bench.close());

const FLIP = fc.record({ at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), bit: fc.nat(7) });

function flip(bytes: Uint8Array, { at, bit }: { at: number; bit: number }): Uint8Array<ArrayBuffer> {
  const flipped = new Uint8Array(bytes);
  const place = Math.floor(at * bytes.length);
  flipped[place] = (flipped[place] ?? 0) ^ (1 << bit);
  return flipped;
}

test("no bit of any file can be flipped unnoticed", async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...BUNDLE_FILES), FLIP, async (name, where) => {
      const bytes = bundle.files[name] ?? new Uint8Array(0);
      if (bytes.length === 0) return;
      const { verdict } = await verify(bundle.copy().write(name, flip(bytes, where)));
      expect(verdict).not.toBe("holds");
    }),
    { numRuns: 150 },
  );
});

/** A file's time or attributes may differ, but another program must unpack the same content. */
function expectSameFiles(changed: Uint8Array): void {
  const files = unzipSync(changed);
  for (const name of BUNDLE_FILES) {
    const [before, after] = [bundle.files[name], files[name]];
    expect([name, before && after && Buffer.compare(before, after)]).toEqual([name, 0]);
  }
}

test("no bit of the archive can be flipped unnoticed, unless all files stay the same", async () => {
  await fc.assert(
    fc.asyncProperty(FLIP, async (where) => {
      const flipped = flip(archive, where);
      const { verdict } = await verify(new Blob([flipped]));
      if (verdict === "holds") expectSameFiles(flipped);
    }),
    { numRuns: 150 },
  );
});

test("nothing in the archive can be cut off, inserted or replaced unnoticed, unless all files stay the same", async () => {
  const part = fc.uint8Array({ maxLength: 50 });
  await fc.assert(
    fc.asyncProperty(FLIP, part, fc.nat(50), async ({ at }, put, cut) => {
      const place = Math.floor(at * archive.length);
      const end = Math.min(archive.length, place + cut);
      const changed = Buffer.concat([archive.subarray(0, place), put, archive.subarray(end)]);
      const { verdict } = await verify(new Blob([new Uint8Array(changed)]));
      if (verdict === "holds") expectSameFiles(changed);
    }),
    { numRuns: 150 },
  );
});
