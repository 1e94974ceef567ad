import { createHash } from "node:crypto";
import {
  createReadStream,
  createWriteStream,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isDeepStrictEqual } from "node:util";
import { createZstdCompress } from "node:zlib";
import { OperatorError } from "../../base/errors.ts";
import { COMMIT, VERSION } from "../../base/version.ts";
import { databasePath, isFile } from "../directory.ts";
import { openReadOnly } from "../sqlite/read-only.ts";
import { copySnapshot } from "../sqlite/snapshot.ts";
import { type Member, writeArchive } from "./archive.ts";
import { CONFIG_FILE, DATABASE_MEMBER, FORMAT, KEY_FILES, MARK_FILE, type Manifest } from "./manifest.ts";

export interface BackupRequest {
  readonly dataDir: string;
  /** Whether the keys go into the backup, and the configuration, which may contain others. */
  readonly withSecrets: boolean;
  /** On a disk with room for one and a half times the database. It is copied and packed in a hidden folder there. */
  readonly workFolder: string;
  readonly now: Date;
  readonly signal: AbortSignal;
  /** Called with what is done, and with the number of its bytes that are done. */
  progress(step: "copying" | "packing", done: number, total: number): void;
}

export interface Backup {
  readonly manifest: Manifest;
  /** The bytes of the backup. To be read once. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Removes the copies. MUST be called. Never throws. */
  close(): void;
}

/** A file of the backup, as it is in it. */
interface PackedFile {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

interface SmallFile extends PackedFile {
  readonly content: Buffer<ArrayBuffer>;
}

const TRIES = 3;
/** The first schema with a ledger for each workspace. */
const FIRST_WITH_LEDGERS = 4;

/**
 * Copies the database of a data directory as of one moment, and packs it. A server may be running on the directory, and
 * nothing in it changes.
 */
export async function makeBackup(request: BackupRequest): Promise<Backup> {
  const { dataDir, workFolder, now, signal, progress } = request;
  removeLeft(workFolder);
  // Only its owner can enter it, and no other backup has it.
  const hidden = mkdtempSync(join(workFolder, HIDDEN));
  const [copyPath, packedPath] = [join(hidden, "copy"), join(hidden, "packed")];
  const close = () => removeQuietly(hidden);
  try {
    const path = databasePath(dataDir);
    progress("copying", 0, statSync(path).size);
    const others = copyBetweenRotations(path, copyPath, request);
    const { schema, ledgers } = readFacts(copyPath);
    const { database, packed } = await pack(copyPath, packedPath, request);
    rmSync(copyPath);
    const files = [packed, ...others];
    const manifest: Manifest = {
      format: FORMAT,
      created_at: now.toISOString(),
      program: { version: VERSION, commit: COMMIT ?? null },
      database: { ...database, schema },
      ledgers,
      keys: KEY_FILES.filter((name) => isFile(join(dataDir, name))),
      with_keys: request.withSecrets,
      files: files.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 })),
    };
    const members = async function* (): AsyncGenerator<Member, void> {
      yield { ...packed, content: Bun.file(packedPath).stream() };
      for (const file of others) yield { ...file, content: new Blob([file.content]).stream() };
    };
    return { manifest, bytes: writeArchive(manifest, members()), close };
  } catch (error) {
    close();
    signal.throwIfAborted();
    throw error;
  }
}

const HIDDEN = ".gatehouse-backup-";
/** No backup takes that long. */
const LEFT_AFTER_MS = 24 * 3_600_000;

/** Removes what backups have left that were killed: each is a copy of the whole database. */
function removeLeft(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(HIDDEN)) continue;
    const path = join(folder, name);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats?.isDirectory() && Date.now() - stats.mtimeMs > LEFT_AFTER_MS) removeQuietly(path);
  }
}

function removeQuietly(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // What is left has a name that says what it is, and a later backup removes it.
  }
}

/**
 * Copies the database, and reads the small files as they were at that moment.
 * @throws OperatorError if the keys changed during every attempt
 */
function copyBetweenRotations(path: string, copyPath: string, request: BackupRequest): SmallFile[] {
  for (let attempt = 1; ; attempt++) {
    const before = smallFiles(request);
    copySnapshot(path, copyPath);
    const after = smallFiles(request);
    if (isDeepStrictEqual(before, after)) return after;
    rmSync(copyPath);
    if (attempt === TRIES) {
      throw new OperatorError(
        "the configuration or the keys in the data directory changed during each of three attempts",
        "try again once they no longer change",
      );
    }
  }
}

/** Compresses the copy, and digests it before and after. */
async function pack(path: string, target: string, { signal, progress }: BackupRequest) {
  const { size } = statSync(path);
  const whole = createHash("sha256");
  const compressed = createHash("sha256");
  let bytes = 0;
  await pipeline(
    createReadStream(path, { highWaterMark: 1024 * 1024 }),
    tap((chunk) => {
      whole.update(chunk);
      bytes += chunk.length;
      progress("packing", bytes, size);
    }),
    createZstdCompress(),
    tap((chunk) => compressed.update(chunk)),
    createWriteStream(target, { flags: "wx", mode: 0o600 }),
    { signal },
  );
  const packed: PackedFile = {
    name: DATABASE_MEMBER,
    bytes: statSync(target).size,
    sha256: compressed.digest("hex"),
  };
  return { database: { bytes: size, sha256: whole.digest("hex") }, packed };
}

/** A stream that passes everything on, and shows it. */
export function tap(seen: (chunk: Buffer) => void): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      seen(chunk);
      done(null, chunk);
    },
  });
}

/** The configuration, the mark and the keys, as far as they exist and belong into the backup. */
function smallFiles({ dataDir, withSecrets }: BackupRequest): SmallFile[] {
  const names = withSecrets ? [CONFIG_FILE, MARK_FILE, ...KEY_FILES] : [MARK_FILE];
  return names.flatMap((name) => {
    const path = join(dataDir, name);
    if (!isFile(path)) return [];
    const content = readFileSync(path);
    const sha256 = createHash("sha256").update(content).digest("hex");
    return [{ name, bytes: content.length, sha256, content }];
  });
}

/** What the copy has, for people who look at a backup. */
function readFacts(path: string): { readonly schema: number; readonly ledgers: Manifest["ledgers"] } {
  const copy = openReadOnly(path);
  try {
    if (copy.schemaVersion < FIRST_WITH_LEDGERS) return { schema: copy.schemaVersion, ledgers: [] };
    const ledgers = copy.all<{ workspace: string; entries: number }>(
      `SELECT w.name AS workspace, COALESCE((SELECT MAX(seq) FROM ledger AS l WHERE l.workspace_id = w.id), 0) AS entries
         FROM workspaces AS w ORDER BY w.id`,
    );
    return { schema: copy.schemaVersion, ledgers };
  } finally {
    copy.close();
  }
}
