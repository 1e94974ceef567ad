import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { deflateRawSync } from "node:zlib";
import { Uint8ArrayWriter, ZipWriter } from "@zip.js/zip.js/lib/zip-core-native.js";
import { unzipSync } from "fflate";
import { FileCursor, LineTooLong, portableHash } from "../../../../src/ledger/verify/bundle/cursor.ts";
import { type BundleBench, openBench, story } from "../../article14/support.ts";
import { codes, Unpacked, verify } from "./support.ts";

/** Input meant to overwhelm the auditor's machine. */
let bench: BundleBench;
let bundle: Unpacked;

beforeAll(async () => {
  bench = await openBench();
  await story(bench, 2);
  bundle = await Unpacked.of(await bench.zip());
});
afterAll(() => bench.close());

/** Many bytes of the same value, which take a few kilobytes in the archive. */
const much = (byte: number, megabytes: number) => new Uint8Array(megabytes * 1_000_000).fill(byte);

describe("a file that unpacks to far more than allowed", () => {
  test.each([
    ["manifest.json", " ", ["file_changed"]],
    ["manifest.sig", "A", ["file_changed"]],
    ["key.txt", "\n", ["file_changed"]],
    ["checkpoint.txt", "x", ["file_changed"]],
    ["report.html", " ", ["file_changed"]],
    ["entries.ndjson", "x", ["line_too_long"]],
    ["leaves.txt", "1", ["line_too_long"]],
    ["erasures.ndjson", "{", ["line_too_long"]],
    ["erasures.ndjson", "\n", ["erasure_changed", "file_changed"]],
    ["entries.ndjson", "\n", ["entry_changed", "too_many_findings", "file_changed"]],
    ["oversight.csv", ",", ["oversight_differs", "file_changed"]],
  ])("%s full of %j", async (name, character, found) => {
    const before = process.memoryUsage.rss();
    const verification = await verify(bundle.copy().write(name, much(character.charCodeAt(0), 20)));
    expect(verification.verdict).toBe("tampered");
    for (const code of found) expect(codes(verification).map((each) => each.split(" ")[0])).toContain(code);
    expect(verification.findings.length).toBeLessThan(100);
    // This test's own unpacked and packed copies of the archive take about 100 MB.
    expect(process.memoryUsage.rss() - before).toBeLessThan(600_000_000);
  });
});

test("an archive of a hundred files is not searched", async () => {
  const writer = new ZipWriter(new Uint8ArrayWriter());
  for (let at = 0; at < 100; at++) await writer.add(`${at}.txt`, new Blob(["x"]).stream());
  const verification = await verify(new Blob([await writer.close()]));
  expect([verification.verdict, codes(verification)]).toEqual(["tampered", ["archive_changed"]]);
});

test("an encrypted file is not part of a bundle", async () => {
  const writer = new ZipWriter(new Uint8ArrayWriter());
  const entries = Object.entries(bundle.files);
  for (const [name, bytes] of entries) {
    await writer.add(
      name,
      new Blob([new Uint8Array(bytes)]).stream(),
      name === "key.txt" ? { password: "x" } : {},
    );
  }
  const verification = await verify(new Blob([await writer.close()]));
  expect([verification.verdict, codes(verification)]).toEqual(["tampered", ["archive_changed"]]);
});

test("files that share their data are refused", async () => {
  // Two directory records point to one local header, so both would be unpacked from the same bytes.
  const body = deflateRawSync(Buffer.from("x"));
  const header = (signature: number, length: number) => {
    const view = Buffer.alloc(length);
    view.writeUInt32LE(signature);
    return view;
  };
  const [first, second] = ["key.txt", "manifest.json"] as const;
  const local = header(0x04034b50, 30);
  local.writeUInt16LE(20, 4);
  local.writeUInt16LE(8, 8);
  local.writeUInt32LE(0x8cdc1683, 14);
  local.writeUInt32LE(body.length, 18);
  local.writeUInt32LE(1, 22);
  local.writeUInt16LE(first.length, 26);
  const record = (name: string) => {
    const central = header(0x02014b50, 46);
    central.writeUInt16LE(20, 4);
    central.writeUInt16LE(20, 6);
    central.writeUInt16LE(8, 10);
    central.writeUInt32LE(0x8cdc1683, 16);
    central.writeUInt32LE(body.length, 20);
    central.writeUInt32LE(1, 24);
    central.writeUInt16LE(name.length, 28);
    return Buffer.concat([central, Buffer.from(name)]);
  };
  const data = Buffer.concat([local, Buffer.from(first), body]);
  const directory = Buffer.concat([record(first), record(second)]);
  const end = header(0x06054b50, 22);
  end.writeUInt16LE(2, 8);
  end.writeUInt16LE(2, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(data.length, 16);
  const archive = new Uint8Array(Buffer.concat([data, directory, end]));
  expect(Object.keys(unzipSync(archive))).toEqual([first, second]);
  expect((await verify(new Blob([archive]))).verdict).toBe("tampered");
});

describe("a line that arrives in chunks", () => {
  const reading = (chunk: Uint8Array, times: number) => {
    let given = 0;
    const chunks = async function* () {
      for (; given < times; given++) yield chunk;
    };
    const cursor = new FileCursor({ name: "entries.ndjson", chunks }, portableHash(), 1e12);
    return { cursor, given: () => given };
  };

  test("is joined", async () => {
    const { cursor } = reading(Buffer.from("ab\nc"), 3);
    const lines: string[] = [];
    for (let line = await cursor.line(); line; line = await cursor.line())
      lines.push(Buffer.from(line).toString());
    expect(lines).toEqual(["ab", "cab", "cab"]);
    expect(await cursor.drain()).toBe(true);
  });

  test("is abandoned after a quarter of a megabyte", async () => {
    const { cursor, given } = reading(much(120, 1).subarray(0, 1_000), 10_000);
    const refusal = await cursor.line().catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(LineTooLong);
    expect(given()).toBeLessThan(260);
  });
});

describe("endless findings", () => {
  test.each([
    ["invalid lines", () => "{}\n", "entry_changed"],
    ["entries from elsewhere", (at: number) => other(at + 1_000_000), "entry_added"],
    ["entries whose position has passed", () => other(1), "entry_added"],
  ])("%s: verification stops", async (_, lineOf, code) => {
    const added = Array.from({ length: 5_000 }, (_, at) => lineOf(at)).join("");
    const entries = bundle.text("entries.ndjson");
    const second = entries.indexOf("\n") + 1;
    const hostile = bundle
      .copy()
      .write("entries.ndjson", entries.slice(0, second) + added + entries.slice(second))
      .manifest(({ counts, range, tree }) => {
        counts.included += 5_000;
        counts.total += 5_000;
        range.last += 5_000;
        tree.size += 5_000;
      });
    const verification = await verify(hostile);
    expect(verification.verdict).toBe("tampered");
    const counted = verification.findings.find(({ message }) => message.startsWith("… and"));
    const more = Number(/[\d,]+/.exec(counted?.message ?? "")?.[0].replace(",", ""));
    expect(counted?.code).toBe(code);
    expect(more).toBeLessThan(1_100);
  });
  const other = (seq: number) =>
    `${bundle.text("entries.ndjson").split("\n")[0]?.replace('"seq":1,', `"seq":${seq},`)}\n`;
});

describe("a manifest that names absurd numbers", () => {
  test.each([
    ["an endless range", (m: Manifest) => Object.assign(m.range, { last: 2 ** 53 - 1 })],
    ["an infinite size", (m: Manifest) => Object.assign(m.tree, { size: 2 ** 53 - 1 })],
    ["a negative size", (m: Manifest) => Object.assign(m.tree, { size: -1 })],
    ["a size that is not an integer", (m: Manifest) => Object.assign(m.tree, { size: 1.5 })],
    ["a range that begins at 0", (m: Manifest) => Object.assign(m.range, { first: 0 })],
    [
      "an endless range in an endless tree",
      (m: Manifest) => {
        Object.assign(m.range, { last: 2 ** 53 - 1 });
        Object.assign(m.tree, { size: 2 ** 53 - 1 });
        Object.assign(m.counts, { total: 2 ** 53 - 1, withheld: 2 ** 53 - 1 - m.counts.included });
      },
    ],
    [
      "far too many hashes",
      (m: Manifest) => Object.assign(m.tree, { before: Array(10_000).fill("A".repeat(44)) }),
    ],
  ])("%s", async (_, change) => {
    const verification = await verify(
      bundle
        .copy()
        .manifest(change)
        .resign((bytes) => bench.keys.signBytes(bytes)),
    );
    expect(verification.verdict).toBe("tampered");
  });
});

interface Manifest {
  range: object;
  tree: object;
  counts: { included: number };
}
