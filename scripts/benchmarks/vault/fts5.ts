import { Database, type Statement } from "bun:sqlite";
import type { CollectionDocument } from "./collections.ts";

/** SQLite's full-text search in an ordinary setup, which the vault is compared with. */
export class PlainFts5 {
  readonly #db = new Database(":memory:");
  readonly #search: Statement<{ id: string }, [string, number]>;

  constructor(documents: readonly CollectionDocument[]) {
    this.#db.run(
      "CREATE VIRTUAL TABLE documents USING fts5(id UNINDEXED, title, text, tokenize = 'porter unicode61')",
    );
    const insert = this.#db.query("INSERT INTO documents (id, title, text) VALUES (?, ?, ?)");
    this.#db.transaction(() => {
      for (const { id, title, text } of documents) insert.run(id, title, text);
    })();
    this.#search = this.#db.query("SELECT id FROM documents WHERE documents MATCH ? ORDER BY rank LIMIT ?");
  }

  /**
   * Finds documents with any word of the query, by BM25, with title and text treated alike.
   * @returns ids, best first
   */
  search(query: string, limit: number): string[] {
    const words = query.match(/[\p{L}\p{N}]+/gu) ?? [];
    if (words.length === 0) return [];
    return this.#search.all(words.map((word) => `"${word}"`).join(" OR "), limit).map(({ id }) => id);
  }

  close(): void {
    this.#db.close();
  }
}
