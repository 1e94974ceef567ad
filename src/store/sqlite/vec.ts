import type { Database } from "bun:sqlite";
import { chmodSync, existsSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { getLoadablePath } from "sqlite-vec";

/** The state of sqlite-vec for this database. */
export type VectorExtension =
  | { readonly path: string; readonly problem: null }
  /** Why it is missing, for the operator. Keyword search still works. */
  | { readonly path: null; readonly problem: string };

const VECTOR_ENTRY_POINT = "sqlite3_vec_init";
/** The owner may read and run it. It is never written, only replaced. */
const MODE = 0o500;
const S_IFREG = 0o100_000;
const EMBEDDED = /^vec0.*\.(so|dylib|dll)$/;

/**
 * Writes sqlite-vec into the folder under a name with its hash, and loads it from there into each connection. The
 * system cannot load a library from inside the program, and a folder that others may write to cannot be trusted.
 * Never throws.
 */
export function loadVectorExtension(databases: readonly Database[], folder: string): VectorExtension {
  let path: string | undefined;
  try {
    const library = findLibrary();
    if (!library) return none(`sqlite-vec is not available for ${process.platform}-${process.arch}`);
    path = install(library, folder);
    for (const database of databases) {
      // The entry point cannot be derived from the hashed file name.
      database.loadExtension(path, VECTOR_ENTRY_POINT);
      database.query("SELECT vec_version()").get();
    }
    return { path, problem: null };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (path === undefined) return none(`sqlite-vec cannot be written to ${folder}: ${message}`);
    // On a file system mounted `noexec`, this fails with "failed to map segment", "cannot open" or "permission
    // denied".
    return none(
      `sqlite-vec cannot be loaded: ${message}; the data directory must not be on a file system mounted noexec`,
    );
  }
}

function none(problem: string): VectorExtension {
  return { path: null, problem };
}

interface Library {
  readonly bytes: Uint8Array;
  readonly suffix: string;
}

/** The library embedded by the build, or the package's when run from source. */
function findLibrary(): Library | undefined {
  for (const file of Bun.embeddedFiles) {
    const name = "name" in file && typeof file.name === "string" ? basename(file.name) : "";
    if (EMBEDDED.test(name)) return { bytes: embeddedBytes(name), suffix: extname(name) };
  }
  const path = packagePath();
  return path === undefined ? undefined : { bytes: readFileSync(path), suffix: extname(path) };
}

/** The compiled program has all modules and files in one folder, whose name depends on the system. */
function embeddedBytes(name: string): Uint8Array {
  return readFileSync(join(import.meta.dir, name));
}

function packagePath(): string | undefined {
  try {
    const path = getLoadablePath();
    return existsSync(path) ? path : undefined;
  } catch {
    // The package has no library for this platform, or is not installed.
    return undefined;
  }
}

/** Readers find the whole file or none. A file of this name that is not ours, or differs, is replaced. */
function install({ bytes, suffix }: Library, folder: string): string {
  const hash = new Bun.CryptoHasher("sha256").update(bytes).digest("hex").slice(0, 16);
  const path = join(folder, `vec0-${hash}${suffix}`);
  if (isOurs(path, bytes)) return path;
  const fresh = `${path}.${process.pid}`;
  if (existsSync(fresh)) rmSync(fresh);
  try {
    // `wx`: never writes through a link that someone else has placed there.
    writeFileSync(fresh, bytes, { mode: MODE, flag: "wx" });
    chmodSync(fresh, MODE);
    renameSync(fresh, path);
  } catch (error) {
    if (existsSync(fresh)) rmSync(fresh);
    throw error;
  }
  return path;
}

function isOurs(path: string, bytes: Uint8Array): boolean {
  if (!existsSync(path)) return false;
  const { mode } = lstatSync(path);
  const isPlain = (mode & ~0o777) === S_IFREG && (mode & 0o777) === MODE;
  return isPlain && Buffer.compare(readFileSync(path), bytes) === 0;
}
