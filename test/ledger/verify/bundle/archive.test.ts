/** Changes to the archive that a bundle is. */
import { describe, expect, test } from "bun:test";
import { zipSync } from "fflate";
import { useBundles, whole } from "./attacks-support.ts";
import { codes, verify } from "./support.ts";

useBundles();

describe("the archive itself", () => {
  const broken = async (change: (files: Record<string, Uint8Array>) => Record<string, Uint8Array>) =>
    verify(new Blob([new Uint8Array(zipSync(change({ ...whole.files })))]));

  test("a file is missing", async () => {
    for (const name of Object.keys(whole.files)) {
      const { [name]: _, ...rest } = whole.files;
      const verification = await broken(() => rest);
      expect([name, verification.verdict]).toEqual([name, "tampered"]);
      expect(codes(verification)).toContain("file_missing");
    }
  });

  test.each([
    ["another file", "notes.txt", "file_added"],
    ["a file in a folder", "a/entries.ndjson", "archive_changed"],
    ["a file outside", "../entries.ndjson", "archive_changed"],
    ["an absolute path", "/etc/passwd", "archive_changed"],
    ["the name in capitals", "ENTRIES.NDJSON", "archive_changed"],
  ])("%s is added", async (_, name, code) => {
    const verification = await broken((files) => ({ ...files, [name]: new Uint8Array(3) }));
    expect(verification.verdict).toBe("tampered");
    expect(codes(verification)).toContain(code);
  });

  test("a file occurs twice", async () => {
    const twice = await whole.copy().write("manifest.jso_", "{}").pack().bytes();
    const text = Buffer.from(twice).toString("latin1").replaceAll("manifest.jso_", "manifest.json");
    const verification = await verify(new Blob([Buffer.from(text, "latin1")]));
    expect([verification.verdict, codes(verification)]).toEqual(["tampered", ["archive_changed"]]);
  });

  test.each([
    ["its end", (bytes: Uint8Array) => bytes.subarray(0, -30)],
    ["its half", (bytes: Uint8Array) => bytes.subarray(0, bytes.length / 2)],
    ["all but its beginning", (bytes: Uint8Array) => bytes.subarray(0, 10)],
    ["everything", () => new Uint8Array(0)],
  ])("without %s it cannot be decided", async (_, cut) => {
    const bytes = await whole.pack().bytes();
    const verification = await verify(new Blob([new Uint8Array(cut(bytes))]));
    expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["not_an_archive"]]);
  });

  test("data before or after it is detected", async () => {
    const bytes = await whole.pack().bytes();
    for (const parts of [
      [new Uint8Array(7), bytes],
      [bytes, new Uint8Array(7)],
      [bytes, bytes],
    ]) {
      expect((await verify(new Blob(parts))).verdict).toBe("tampered");
    }
  });

  test("an archive of something else cannot be decided", async () => {
    const verification = await broken(() => ({ "holiday.jpg": new Uint8Array(3) }));
    expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["not_a_bundle"]]);
  });

  test("a bundle of a newer version cannot be decided", async () => {
    const verification = await verify(
      whole.copy().manifest((manifest) => {
        manifest.version = 2;
      }),
    );
    expect([verification.verdict, codes(verification)]).toEqual(["undecided", ["newer_format"]]);
  });
});
