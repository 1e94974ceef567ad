/**
 * A backup is restored only if it has exactly the bytes that were written. The database and the keys in it are real; what
 * is damaged is a copy.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import fc from "fast-check";
import { BackupDamaged, checkArchive, openArchive } from "../../../src/store/backup/archive.ts";
import { makeBackup } from "../../../src/store/backup/make.ts";
import { KEY_FILES } from "../../../src/store/backup/manifest.ts";
import { unpackBackup } from "../../../src/store/backup/unpack.ts";
import { databasePath } from "../../../src/store/directory.ts";
import { startGateway } from "../../support/gateway.ts";
import { tempDir } from "../../support/process.ts";

const directory = tempDir();
const dataDir = join(directory.path, "data");
let whole: Buffer<ArrayBuffer>;

beforeAll(async () => {
  const gateway = await startGateway({ dataDir, isOnFiles: true });
  await gateway.agent("helper");
  await gateway.stop();
  writeFileSync(join(dataDir, "gatehouse.yaml"), "limits: { requests_per_minute: 100 }\n");
  whole = await backup();
});
afterAll(() => directory.remove());

async function backup(): Promise<Buffer<ArrayBuffer>> {
  const made = await makeBackup({
    ...{ dataDir, workFolder: directory.path, withSecrets: true },
    ...{ now: new Date(0), signal: new AbortController().signal, progress() {} },
  });
  const bytes = Buffer.concat(await Array.fromAsync(made.bytes));
  made.close();
  return bytes;
}

/** Why the bytes are refused; null if they are not. */
async function refusal(bytes: Uint8Array<ArrayBuffer>): Promise<string | null> {
  const target = mkdtempSync(join(directory.path, "target-"));
  try {
    await unpackBackup({ file: new Blob([bytes]), directory: target, progress() {} });
    return null;
  } catch (error) {
    if (error instanceof BackupDamaged) return error.message;
    throw error;
  }
}

function changed(at: number, by: number): Uint8Array<ArrayBuffer> {
  const copy = Buffer.from(whole);
  copy[at] = (copy[at] ?? 0) ^ by;
  return copy;
}

test("what was written is unpacked byte by byte", async () => {
  const target = mkdtempSync(join(directory.path, "target-"));
  const manifest = await unpackBackup({ file: new Blob([whole]), directory: target, progress() {} });
  expect(manifest).toMatchObject({
    format: "gatehouse-backup/1",
    created_at: "1970-01-01T00:00:00.000Z",
    ledgers: [{ workspace: "default" }],
    keys: ["ledger.key", "secrets.key"],
    with_keys: true,
  });
  for (const name of ["gatehouse.yaml", "ledger.key", "secrets.key"]) {
    expect(readFileSync(join(target, name), "utf8")).toBe(readFileSync(join(dataDir, name), "utf8"));
  }
  const unpacked = new Bun.CryptoHasher("sha256").update(readFileSync(databasePath(target))).digest("hex");
  expect(manifest.database).toMatchObject({ sha256: unpacked, bytes: Bun.file(databasePath(target)).size });
});

test("the same moment and files give the same bytes", async () => {
  expect(await backup()).toEqual(whole);
});

test("the usual programs read it", async () => {
  const path = join(directory.path, "whole.tar");
  writeFileSync(path, whole);
  expect((await $`tar tf ${path}`.text()).split("\n").filter(Boolean)).toEqual([
    "manifest.json",
    "gatehouse.db.zst",
    "gatehouse.yaml",
    "ledger.key",
    "secrets.key",
  ]);
  const [digest] = (await $`head -c -73 ${path} | sha256sum`.text()).split(" ");
  expect(await $`tail -c 73 ${path}`.text()).toBe(`\nsha256:${digest}\n`);
});

describe("is refused", () => {
  test("with any byte changed", async () => {
    const anywhere = fc.nat({ max: whole.length - 1 });
    // The manifest, the headers, the end of the archive and the line after it are a small part of it.
    const nearAnEnd = fc.oneof(
      fc.nat({ max: 3_000 }),
      fc.nat({ max: 8_000 }).map((at) => whole.length - 1 - at),
    );
    await fc.assert(
      fc.asyncProperty(fc.oneof(anywhere, nearAnEnd), fc.integer({ min: 1, max: 255 }), async (at, by) => {
        expect(await refusal(changed(at, by))).not.toBeNull();
      }),
      { numRuns: 500 },
    );
  });

  test("cut off anywhere, or with anything after its end", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: whole.length - 1 }), async (length) => {
        expect(await refusal(whole.subarray(0, length))).not.toBeNull();
      }),
      { numRuns: 100 },
    );
    expect(await refusal(Buffer.concat([whole, Buffer.from("\n")]))).not.toBeNull();
    expect(await refusal(Buffer.concat([whole, whole]))).not.toBeNull();
  });

  test("by its digest before any of it is parsed", async () => {
    const seen: number[] = [];
    const check = checkArchive(new Blob([changed(700, 1)]), (bytes) => void seen.push(bytes));
    await expect(check).rejects.toThrow("digest differs");
    expect(seen.reduce((total, bytes) => total + bytes, 0)).toBe(whole.length - 73);
  });
});

/** An archive with a valid digest, whose content somebody has put together. */
async function forged(members: readonly (readonly [name: string, text: string])[]) {
  const folder = mkdtempSync(join(directory.path, "forged-"));
  for (const [name, text] of members) writeFileSync(join(folder, name), text);
  const names = members.map(([name]) => name);
  const bytes = await $`tar cf - --format=ustar ${names}`.cwd(folder).arrayBuffer();
  const digest = new Bun.CryptoHasher("sha256").update(new Uint8Array(bytes)).digest("hex");
  return Buffer.concat([Buffer.from(bytes), Buffer.from(`\nsha256:${digest}\n`)]);
}

describe("put together by somebody, is refused", () => {
  const sha256 = new Bun.CryptoHasher("sha256").update("x").digest("hex");
  const file = (name: string, fields = {}) => ({ name, bytes: 1, sha256, ...fields });
  const manifest = (fields: object) =>
    JSON.stringify({
      format: "gatehouse-backup/1",
      created_at: new Date(0).toISOString(),
      program: { version: "1.0.0", commit: null },
      database: { bytes: 1, sha256, schema: 1 },
      ledgers: [],
      keys: [],
      with_keys: false,
      files: [],
      ...fields,
    });

  const refused: readonly (readonly [what: string, members: [string, string][], why: string])[] = [
    ["without a manifest", [["ledger.key", "x"]], "it does not begin with a manifest"],
    ["with a manifest that is not JSON", [["manifest.json", "{"]], "its manifest is not JSON"],
    [
      "of a later format",
      [["manifest.json", manifest({ format: "gatehouse-backup/2" })]],
      "its manifest does not match the format gatehouse-backup/1: a newer program may have written it",
    ],
    [
      "with a file that no data directory has",
      [
        ["manifest.json", manifest({ files: [file("server.json")] })],
        ["server.json", "x"],
      ],
      "its manifest names an unknown file, server.json",
    ],
    [
      "with a path that leads out of the directory",
      [["manifest.json", manifest({ files: [file("../ledger.key")] })]],
      "its manifest names an unknown file, ../ledger.key",
    ],
    [
      "with a file twice",
      [["manifest.json", manifest({ files: [file("ledger.key"), file("ledger.key")] })]],
      "its manifest names a file twice",
    ],
    [
      "with a file that the manifest does not name",
      [
        ["manifest.json", manifest({})],
        ["ledger.key", "x"],
      ],
      "its manifest does not name ledger.key",
    ],
    [
      "without a file that the manifest names",
      [["manifest.json", manifest({ files: [file("ledger.key")] })]],
      "its manifest names ledger.key of 1 bytes, which it does not have in that place",
    ],
    [
      "with a file of another length",
      [
        ["manifest.json", manifest({ files: [file("ledger.key", { bytes: 2 })] })],
        ["ledger.key", "x"],
      ],
      "its manifest names ledger.key of 2 bytes, which it does not have in that place",
    ],
    [
      "with a file of other content",
      [
        ["manifest.json", manifest({ files: [file("ledger.key")] })],
        ["ledger.key", "y"],
      ],
      "ledger.key in it differs from its manifest",
    ],
    ["without a database", [["manifest.json", manifest({})]], "it has no database"],
  ];
  test.each(refused)("%s", async (_what, members, why) => {
    expect(await refusal(await forged(members))).toBe(why);
  });

  test("with a database that unpacks to more than its manifest says", async () => {
    const packed = await Bun.zstdCompress(new Uint8Array(64 * 1024 * 1024));
    const folder = mkdtempSync(join(directory.path, "bomb-"));
    const digest = new Bun.CryptoHasher("sha256").update(packed).digest("hex");
    const files = [{ name: "gatehouse.db.zst", bytes: packed.length, sha256: digest }];
    writeFileSync(join(folder, "gatehouse.db.zst"), packed);
    writeFileSync(join(folder, "manifest.json"), manifest({ files }));
    const bytes = await $`tar cf - --format=ustar manifest.json gatehouse.db.zst`.cwd(folder).arrayBuffer();
    const end = new Bun.CryptoHasher("sha256").update(new Uint8Array(bytes)).digest("hex");
    const target = mkdtempSync(join(directory.path, "target-"));
    const file = new Blob([Buffer.concat([Buffer.from(bytes), Buffer.from(`\nsha256:${end}\n`)])]);
    await expect(unpackBackup({ file, directory: target, progress() {} })).rejects.toThrow(
      "its database is larger than its manifest says",
    );
  });

  test("with a database that has no room on the disk, before any of it is unpacked", async () => {
    const files = [file("gatehouse.db.zst")];
    const bytes = await forged([
      ["manifest.json", manifest({ files, database: { bytes: Number.MAX_SAFE_INTEGER, sha256, schema: 1 } })],
      ["gatehouse.db.zst", "x"],
    ]);
    const target = mkdtempSync(join(directory.path, "target-"));
    await expect(unpackBackup({ file: new Blob([bytes]), directory: target, progress() {} })).rejects.toThrow(
      /the disk has room for/,
    );
    expect(readdirSync(target)).toEqual([]);
  });

  test("with a database that is not compressed", async () => {
    const files = [file("gatehouse.db.zst")];
    const bytes = await forged([
      ["manifest.json", manifest({ files })],
      ["gatehouse.db.zst", "x"],
    ]);
    expect(await refusal(bytes)).toStartWith("it cannot be unpacked: ");
  });

  test("that is no tar archive", async () => {
    const bytes = Buffer.alloc(2_048, 7);
    const end = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
    expect(await refusal(Buffer.concat([bytes, Buffer.from(`\nsha256:${end}\n`)]))).toBeString();
  });

  test("with a link instead of a file", async () => {
    const folder = mkdtempSync(join(directory.path, "link-"));
    writeFileSync(
      join(folder, "manifest.json"),
      manifest({ files: [file("ledger.key", { bytes: 0, sha256: "0".repeat(64) })] }),
    );
    await $`ln -s /etc/passwd ledger.key`.cwd(folder);
    const bytes = await $`tar cf - --format=ustar manifest.json ledger.key`.cwd(folder).arrayBuffer();
    const end = new Bun.CryptoHasher("sha256").update(new Uint8Array(bytes)).digest("hex");
    expect(await refusal(Buffer.concat([Buffer.from(bytes), Buffer.from(`\nsha256:${end}\n`)]))).toBe(
      "ledger.key in it is not a file",
    );
  });
});

test("its manifest can be read without unpacking the rest", async () => {
  const { manifest } = await openArchive(new Blob([whole]));
  expect(manifest.files.map(({ name }) => name)).toEqual([
    "gatehouse.db.zst",
    "gatehouse.yaml",
    ...KEY_FILES.filter((name) => name === "ledger.key" || name === "secrets.key"),
  ]);
});
