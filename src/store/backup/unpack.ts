import { createHash } from "node:crypto";
import { closeSync, createWriteStream, fsyncSync, openSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdDecompress } from "node:zlib";
import { databasePath } from "../directory.ts";
import { BackupDamaged, checkArchive, type Member, openArchive } from "./archive.ts";
import { passing } from "./make.ts";
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
export async function unpackBackup({ file, directory, progress }: UnpackRequest): Promise<Manifest> {
  let checked = 0;
  await checkArchive(file, (bytes) => {
    checked += bytes;
    progress("checking", checked, file.size);
  });
  const { manifest, members } = await openArchive(file);
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
    passing((chunk) => compressed.update(chunk)),
    createZstdDecompress(),
    passing((chunk) => {
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
    passing((chunk) => hash.update(chunk)),
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
