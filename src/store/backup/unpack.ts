import { createHash } from "node:crypto";
import { closeSync, createWriteStream, fsyncSync, openSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdDecompress } from "node:zlib";
import { OperatorError } from "../../base/errors.ts";
import { databasePath } from "../directory.ts";
import { BackupDamaged, checkArchive, type Member, openArchive } from "./archive.ts";
import { tap } from "./make.ts";
import { DATABASE_MEMBER, type Manifest } from "./manifest.ts";

export interface UnpackRequest {
  readonly file: Blob;
  /** An empty directory. */
  readonly directory: string;
  /** Called with the number of bytes that are done. */
  progress(step: "checking" | "unpacking", done: number, total: number): void;
}

/**
 * Checks all bytes of a backup, then unpacks it, and compares each file with the manifest. What was unpacked before an error
 * remains.
 * @throws BackupDamaged
 */
export async function unpackBackup(request: UnpackRequest): Promise<Manifest> {
  try {
    return await unpack(request);
  } catch (error) {
    if (error instanceof BackupDamaged || isOfSystem(error)) throw error;
    // What the decoders of tar and zstd say.
    throw new BackupDamaged(
      `it cannot be unpacked: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

/** An error of the disk, such as that it is full. */
function isOfSystem(error: unknown): boolean {
  return error instanceof OperatorError || (error instanceof Error && "syscall" in error);
}

async function unpack({ file, directory, progress }: UnpackRequest): Promise<Manifest> {
  let checked = 0;
  await checkArchive(file, (bytes) => {
    checked += bytes;
    progress("checking", checked, file.size);
  });
  const { manifest, members } = await openArchive(file);
  requireRoom(directory, manifest.database.bytes);
  for await (const member of members) {
    const expected = manifest.files.find(({ name }) => name === member.name)?.sha256;
    const digest =
      member.name === DATABASE_MEMBER
        ? await unpackDatabase(member, manifest, directory, progress)
        : await copyMember(member, join(directory, member.name));
    if (digest !== expected) throw new BackupDamaged(`${member.name} in it differs from its manifest`);
  }
  if (!manifest.files.some(({ name }) => name === DATABASE_MEMBER)) {
    throw new BackupDamaged("it has no database");
  }
  return manifest;
}

/** @throws OperatorError */
function requireRoom(directory: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(directory);
  if (bytes <= bavail * bsize) return;
  throw new OperatorError(
    `the database in the backup has ${bytes} bytes, and the disk has room for ${bavail * bsize}`,
    "free some space, or restore to another disk",
  );
}

/** @returns the digest of the compressed bytes */
async function unpackDatabase(
  { content }: Member,
  { database }: Manifest,
  directory: string,
  progress: UnpackRequest["progress"],
): Promise<string> {
  const compressed = createHash("sha256");
  const whole = createHash("sha256");
  let bytes = 0;
  const path = databasePath(directory);
  await pipeline(
    Readable.from(content),
    tap((chunk) => compressed.update(chunk)),
    createZstdDecompress(),
    tap((chunk) => {
      bytes += chunk.length;
      if (bytes > database.bytes) throw new BackupDamaged("its database is larger than its manifest says");
      whole.update(chunk);
      progress("unpacking", bytes, database.bytes);
    }),
    createWriteStream(path, { flags: "wx", mode: 0o600 }),
  );
  if (bytes !== database.bytes || whole.digest("hex") !== database.sha256) {
    throw new BackupDamaged("its database differs from its manifest");
  }
  syncFile(path);
  return compressed.digest("hex");
}

async function copyMember({ content }: Member, path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(
    Readable.from(content),
    tap((chunk) => hash.update(chunk)),
    createWriteStream(path, { flags: "wx", mode: 0o600 }),
  );
  syncFile(path);
  return hash.digest("hex");
}

function syncFile(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
