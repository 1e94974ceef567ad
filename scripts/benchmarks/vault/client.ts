import Type, { type Static } from "typebox";
import { validator } from "../../../src/base/schema.ts";
import type { SEARCH_MODES } from "../../../src/vault/fields.ts";

export type Mode = (typeof SEARCH_MODES)[number];

export interface VaultDocument {
  readonly title: string;
  readonly text: string;
  readonly scope: string;
}

export interface Search {
  readonly query: string;
  readonly top_k: number;
  readonly mode: Mode;
}

const added = validator(Type.Object({ id: Type.String({ pattern: "^doc_" }) }));
const answer = validator(
  Type.Object({
    results: Type.Array(
      Type.Object({
        document_id: Type.String(),
        chunk_id: Type.String(),
        text: Type.String({ minLength: 1 }),
        scope: Type.String(),
        score: Type.Number(),
        start: Type.Integer({ minimum: 0 }),
        end: Type.Integer({ minimum: 1 }),
      }),
    ),
    mode: Type.String(),
    took_ms: Type.Number({ minimum: 0 }),
  }),
);
export type Passage = Static<typeof answer.schema>["results"][number];

/** A Gatehouse's vault over REST, with the rights of a token. Every answer is checked. */
export class VaultClient {
  readonly #port: number;
  readonly #token: string;

  constructor(port: number, token: string) {
    this.#port = port;
    this.#token = token;
  }

  /** @returns the new document's id */
  async add(document: VaultDocument): Promise<string> {
    return added.parse(await this.#post(201, "/v1/vault/documents", document)).id;
  }

  /**
   * @returns passages, best first
   * @throws Error if there are too many, or they are out of order, duplicated or of another mode. Documents are
   *   ordered by their first passages; further passages of a document may follow later, so that they displace no
   *   other document.
   */
  async search(search: Search): Promise<readonly Passage[]> {
    const { results, mode } = answer.parse(await this.#post(200, "/v1/vault/search", search));
    const problem =
      mode !== search.mode
        ? `the mode is ${mode}`
        : results.length > search.top_k
          ? `${results.length} results`
          : new Set(results.map(({ chunk_id }) => chunk_id)).size < results.length
            ? "a passage is there twice"
            : areInOrder(results)
              ? null
              : "the scores are not in order";
    if (problem !== null) throw new Error(`${problem}: ${JSON.stringify(search)}`);
    return results;
  }

  async #post(status: number, path: string, body: object): Promise<unknown> {
    const response = await fetch(`http://127.0.0.1:${this.#port}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (response.status !== status) throw new Error(`POST ${path}: ${response.status} ${text.slice(0, 500)}`);
    return JSON.parse(text);
  }
}

function areInOrder(results: readonly Passage[]): boolean {
  const seen = new Set<string>();
  let last = Number.POSITIVE_INFINITY;
  for (const { document_id, score } of results) {
    if (seen.has(document_id)) continue;
    if (score > last) return false;
    seen.add(document_id);
    last = score;
  }
  return true;
}

/** Calls in flight while documents are added. */
export const WRITERS = 8;

/**
 * Adds documents 0 to `count` - 1, several at once.
 * @param isOver called before each document
 * @returns the documents' ids in order, and how long it took
 */
export async function ingest(
  client: VaultClient,
  count: number,
  document: (index: number) => VaultDocument,
  isOver: () => boolean = () => false,
): Promise<{ readonly ids: readonly string[]; readonly seconds: number }> {
  const ids: string[] = [];
  let next = 0;
  let failed = false;
  const begun = performance.now();
  async function write(): Promise<void> {
    try {
      for (let index = next++; index < count && !failed && !isOver(); index = next++) {
        ids[index] = await client.add(document(index));
      }
    } catch (error) {
      failed = true;
      throw error;
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, write));
  return { ids, seconds: (performance.now() - begun) / 1000 };
}
