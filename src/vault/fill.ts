import { EmbeddingFailed } from "../models/embedder.ts";
import type { Sql, Tx } from "../store/db.ts";
import { embeddedText } from "./embedded-text.ts";
import { documentOf, keyOf, PER_DOCUMENT } from "./keys.ts";
import { LEXICAL_SPACE, lexicalVector } from "./lexical.ts";
import { PAGE_LENGTH } from "./pages.ts";
import type { VaultParts } from "./parts.ts";
import { hasVector, insertVector, type Space } from "./spaces.ts";
import { vectorTable } from "./vector-table.ts";
import { wordsOf } from "./words.ts";

/** Passages that are given their vectors at once. */
const BATCH = 64;
/** Of `builtin/lexical`, whose vectors are made here: some 4 ms. */
const LEXICAL_BATCH = 16;
const FIRST_WAIT_MS = 1_000;
const LAST_WAIT_MS = 60_000;
/** A passage that the model refuses is asked for again after a day: the model may be another one by then. */
const REFUSED_MS = 86_400_000;
const IDLE_MS = 5_000;

interface Missing {
  readonly key: number;
  readonly workspaceId: number;
  readonly scopeId: number;
  readonly title: string;
  readonly text: string;
  readonly hash: Uint8Array;
}

interface MissingRow {
  readonly key: number;
  readonly workspace_id: number;
  readonly scope_id: number;
  readonly title: string;
  readonly start: number;
  readonly end: number;
  readonly hash: Uint8Array;
}

/**
 * Gives passages the vectors that they lack, in the background: what a model could not give when the document was written,
 * and everything, after another model was configured. What was filled completely takes the old space's place.
 */
export class Filler {
  readonly #parts: VaultParts;
  #cancel = () => {};
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #wait = FIRST_WAIT_MS;

  constructor(parts: VaultParts) {
    this.#parts = parts;
  }

  start(): void {
    if (this.#parts.spaces.isAvailable) this.#schedule(0);
  }

  /** Resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#cancel();
    await this.#running;
  }

  #schedule(ms: number): void {
    if (this.#stopping.signal.aborted) return;
    this.#cancel = this.#parts.clock.after(ms, () => {
      this.#running = this.#turn();
    });
  }

  async #turn(): Promise<void> {
    let wait = IDLE_MS;
    try {
      for (const space of this.#parts.spaces.written) {
        if (await this.#fill(space)) wait = 0;
      }
      this.#wait = FIRST_WAIT_MS;
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      wait = this.#wait;
      if (error instanceof EmbeddingFailed) wait = Math.max(wait, error.retryAfterMs ?? 0);
      this.#wait = Math.min(this.#wait * 2, LAST_WAIT_MS);
      const reason = error instanceof EmbeddingFailed ? error.reason : undefined;
      this.#parts.log.warn("passages wait for their vectors", reason === undefined ? { error } : { reason });
    }
    this.#schedule(wait);
  }

  /** @returns whether there may be more to do */
  async #fill(space: Space): Promise<boolean> {
    const { db, spaces, embedder, clock } = this.#parts;
    const isLexical = space.name === LEXICAL_SPACE;
    // A space of a model that is not configured any more waits for the way back.
    if (!isLexical && space.name !== embedder?.space) return false;
    const missing = await this.#missing(space, isLexical ? LEXICAL_BATCH : BATCH);
    if (missing === null) {
      const left = await db.get(
        "SELECT 1 FROM vault_pending WHERE space_id = $1 AND retry_at <= $2 LIMIT 1",
        [space.id, clock.now()],
      );
      if (left || space.state !== "filling") return left !== undefined;
      await spaces.swap(space);
      this.#parts.log.info("the vault is searched with another model", { space: space.name });
      return false;
    }
    const vectors = isLexical
      ? missing.map(({ title, text }) => {
          const name = wordsOf(title);
          return lexicalVector([...name, ...name, ...wordsOf(text)]);
        })
      : await this.#embed(space, missing);
    await this.#store(space, missing, vectors);
    return true;
  }

  /** Null where nothing is missing. A list that is empty was put down, but is there or gone already. */
  async #missing(space: Space, limit: number): Promise<readonly Missing[] | null> {
    const { db, clock } = this.#parts;
    const keys = await db.all<{ chunk_key: number }>(
      "SELECT chunk_key FROM vault_pending WHERE space_id = $1 AND retry_at <= $2 ORDER BY chunk_key LIMIT $3",
      [space.id, clock.now(), limit],
    );
    if (keys.length === 0) return null;
    const missing: Missing[] = [];
    const done: number[] = [];
    for (const { chunk_key: key } of keys) {
      const row = await findMissing(db, key);
      if (!row || (space.dimensions > 0 && (await hasVector(db, space, key)))) {
        done.push(key);
        continue;
      }
      const text = await readText(db, documentOf(key), row.start, row.end);
      missing.push({
        key,
        workspaceId: row.workspace_id,
        scopeId: row.scope_id,
        title: row.title,
        text,
        hash: row.hash,
      });
    }
    if (done.length > 0) await db.tx((tx) => cross(tx, space, done));
    return missing;
  }

  /** Equal passages of a workspace have equal vectors: what is known already is not asked for again. */
  async #embed(space: Space, missing: readonly Missing[]): Promise<readonly (Float32Array | null)[]> {
    const { db, embedder } = this.#parts;
    if (!embedder || missing.length === 0) return [];
    const vectors: (Float32Array | null)[] = [];
    const asked: { readonly at: number; readonly text: string }[] = [];
    for (const [at, { hash, title, text, workspaceId }] of missing.entries()) {
      const known = space.dimensions > 0 ? await knownVector(db, space, workspaceId, hash) : undefined;
      vectors.push(known ?? null);
      if (!known) asked.push({ at, text: embeddedText(title, text) });
    }
    const made = await this.#ask(asked.map(({ text }) => text));
    for (const [index, { at }] of asked.entries()) vectors[at] = made[index] ?? null;
    return vectors;
  }

  /** Null for a text that the model refuses, whatever is done. */
  async #ask(texts: readonly string[]): Promise<readonly (Float32Array | null)[]> {
    const { embedder } = this.#parts;
    if (!embedder || texts.length === 0) return [];
    try {
      return await embedder.embed(texts, "document", this.#stopping.signal);
    } catch (error) {
      if (!(error instanceof EmbeddingFailed) || error.text === undefined) throw error;
      const refused = error.text;
      const before = await this.#ask(texts.slice(0, refused));
      const after = await this.#ask(texts.slice(refused + 1));
      return [...before, null, ...after];
    }
  }

  async #store(
    given: Space,
    missing: readonly Missing[],
    vectors: readonly (Float32Array | null)[],
  ): Promise<void> {
    const { db, spaces, clock } = this.#parts;
    const first = vectors.find((vector) => vector !== null);
    if (first && given.dimensions !== first.length) await spaces.dimension(given, first.length);
    const space = spaces.all.find(({ id }) => id === given.id) ?? given;
    await db.tx(async (tx) => {
      const done: number[] = [];
      for (const [index, { key, scopeId }] of missing.entries()) {
        const vector = vectors[index];
        if (!vector && space.name !== LEXICAL_SPACE) {
          await tx.run("UPDATE vault_pending SET retry_at = $3 WHERE space_id = $1 AND chunk_key = $2", [
            space.id,
            key,
            clock.now() + REFUSED_MS,
          ]);
          continue;
        }
        done.push(key);
        // Deleted while the model was asked: its vector must not come back.
        if (vector && (await findMissing(tx, key))) await insertVector(tx, space, scopeId, key, vector);
      }
      await cross(tx, space, done);
    });
  }
}

async function cross(tx: Tx, space: Space, keys: readonly number[]): Promise<void> {
  for (const key of keys) {
    await tx.run("DELETE FROM vault_pending WHERE space_id = $1 AND chunk_key = $2", [space.id, key]);
  }
}

function findMissing(sql: Sql, key: number): Promise<MissingRow | undefined> {
  return sql.get<MissingRow>(
    `SELECT c.key, d.workspace_id, d.scope_id, d.title, c."start", c."end", c.hash
     FROM vault_chunks AS c JOIN vault_documents AS d ON d.key = $2 WHERE c.key = $1 AND d.state <> 'removing'`,
    [key, documentOf(key)],
  );
}

async function readText(sql: Sql, document: number, start: number, end: number): Promise<string> {
  const rows = await sql.all<{ start: number; text: string }>(
    'SELECT "start", text FROM vault_pages WHERE key BETWEEN $1 AND $2 ORDER BY key',
    [keyOf(document, Math.floor(start / PAGE_LENGTH)), keyOf(document, Math.floor(end / PAGE_LENGTH) + 1)],
  );
  const first = rows[0]?.start ?? 0;
  return rows
    .map(({ text }) => text)
    .join("")
    .slice(start - first, end - first);
}

async function knownVector(
  sql: Sql,
  space: Space,
  workspaceId: number,
  hash: Uint8Array,
): Promise<Float32Array | undefined> {
  const row = await sql.get<{ embedding: Uint8Array }>(
    `SELECT v.embedding FROM vault_chunks AS c
     JOIN vault_documents AS d ON d.key = c.key / ${PER_DOCUMENT} AND d.workspace_id = $2
     JOIN ${vectorTable(space.id)} AS v ON v.passage = c.key WHERE c.hash = $1 LIMIT 1`,
    [hash, workspaceId],
  );
  return row && new Float32Array(row.embedding.slice().buffer);
}
