/** Searches a data directory's files byte by byte for what is left of a text, a vector or an index. */
import { Database } from "bun:sqlite";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getLoadablePath } from "sqlite-vec";
import { databasePath } from "../../src/store/directory.ts";

/** The names of the files below the directory that contain the bytes. */
export function filesWith(directory: string, bytes: string | Uint8Array): string[] {
  const needle = Buffer.from(bytes);
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(directory, name)).isFile())
    .filter((name) => readFileSync(join(directory, name)).includes(needle));
}

/** The needles that some file still contains, each with the file. */
export function leftovers(directory: string, needles: Readonly<Record<string, string | Uint8Array>>) {
  return Object.entries(needles).flatMap(([name, bytes]) =>
    filesWith(directory, bytes).map((file) => `${name} in ${file}`),
  );
}

/** A separate read-only connection to a gateway's file, with sqlite-vec. */
export function openFile(directory: string): Database {
  const database = new Database(databasePath(directory), { readonly: true });
  database.loadExtension(getLoadablePath());
  return database;
}

/** The bytes of a document's vectors, from every space. */
export function vectorsOf(directory: string, id: string): Uint8Array[] {
  const file = openFile(directory);
  try {
    const spaces = file.query<{ id: number }, []>("SELECT id FROM vault_spaces WHERE dimensions > 0").all();
    return spaces.flatMap(({ id: space }) =>
      file
        .query<{ embedding: Uint8Array }, [string]>(
          `SELECT v.embedding FROM vault_documents AS d
           JOIN vault_chunks AS c ON c.key BETWEEN d.key * 65536 AND d.key * 65536 + 65535
           JOIN vault_vectors_${space} AS v ON v.passage = c.key WHERE d.id = ? AND d.state = 'live'`,
        )
        .all(id)
        .map(({ embedding }) => embedding),
    );
  } finally {
    file.close();
  }
}

/** A run of bytes unique to a vector: from a part that is mostly not zero. */
export function stretchOf(vector: Uint8Array, length = 24): Uint8Array {
  for (let at = 0; at + length <= vector.length; at += 4) {
    const stretch = vector.subarray(at, at + length);
    const numbers = new Float32Array(stretch.slice().buffer);
    if (numbers.filter((number) => number !== 0).length * 2 > numbers.length) return stretch;
  }
  throw new Error("the vector is all but empty");
}

/**
 * Puts a folder in place of sqlite-vec's library, which can then be neither written nor loaded until the folder is
 * removed.
 */
export function blockLibrary(directory: string): string {
  const bytes = readFileSync(getLoadablePath());
  const hash = new Bun.CryptoHasher("sha256").update(bytes).digest("hex").slice(0, 16);
  const path = join(directory, `vec0-${hash}.so`);
  rmSync(path, { force: true });
  mkdirSync(path);
  writeFileSync(join(path, "x"), "");
  return path;
}
