import { isHashOf } from "../../ledger/payload.ts";
import type { Sql } from "../../store/db.ts";

/** Matches a document's id anywhere in text. */
const DOCUMENT = /doc_[0-7][0-9a-hjkmnp-tv-z]{25}/g;
/** Matches an id in a provider's JSON, but not in a model's own text, where the quotation marks are escaped. */
const PROVIDED_ID = /"id"\s*:\s*"([A-Za-z0-9_-]{1,128})"/g;

/** The document ids that the text contains. */
export function documentsIn(text: string): ReadonlySet<string> {
  return new Set(text.match(DOCUMENT));
}

/** The ids of a response and its items, by which later requests refer to them. The response's own id comes first. */
export function responseIdsIn(output: string): ReadonlySet<string> {
  const { id: own } = parsedMembers(output);
  const ids = [...output.matchAll(PROVIDED_ID)].map(([, id = ""]) => id);
  return new Set(typeof own === "string" ? [own, ...ids] : ids);
}

/** The earlier responses that a request refers to. */
export interface RequestReferences {
  /** The id of the response that it continues, and the ids of its items. */
  readonly ids: ReadonlySet<string>;
  /** The ids of the items whose content the request repeats. */
  readonly repeated: ReadonlySet<string>;
}

const NO_CONTENT: ReadonlySet<string> = new Set(["id", "type", "status"]);

/** What a Responses request refers to. Empty if the text is not JSON. */
export function referencesIn(request: string): RequestReferences {
  const { previous_response_id: previous, input } = parsedMembers(request);
  const ids = new Set<string>(typeof previous === "string" ? [previous] : []);
  const repeated = new Set<string>();
  for (const item of Array.isArray(input) ? input : []) {
    const { id, ...rest }: Record<string, unknown> = { ...(item as object) };
    if (typeof id !== "string") continue;
    ids.add(id);
    if (Object.keys(rest).some((name) => !NO_CONTENT.has(name))) repeated.add(id);
  }
  return { ids, repeated };
}

function parsedMembers(text: string): Record<string, unknown> {
  try {
    return { ...(JSON.parse(text) as object) };
  } catch {
    return {};
  }
}

/** A response whose texts were erased, as its erasure recorded it. */
export interface ErasedLink {
  /** The ids of the response and its items. */
  readonly ids: readonly string[];
  /** The ids that its request referred to. */
  readonly references: readonly string[];
}

/** The responses with conversations that quote a document. They MUST be added oldest first. */
export class QuotingResponses {
  readonly #ids = new Set<string>();
  /** The ids of erased responses, by what they refer to. */
  readonly #continuing = new Map<string, Set<string>>();

  constructor(erased: readonly ErasedLink[]) {
    for (const { ids, references } of erased) {
      for (const reference of references) {
        const continuing = this.#continuing.get(reference) ?? new Set();
        for (const id of ids) continuing.add(id);
        this.#continuing.set(reference, continuing);
      }
    }
  }

  get isEmpty(): boolean {
    return this.#ids.size === 0;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Adds a response, and the erased responses that continued it. */
  add(ids: Iterable<string>): void {
    const waiting = [...ids];
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      if (this.#ids.has(id)) continue;
      this.#ids.add(id);
      waiting.push(...(this.#continuing.get(id) ?? []));
    }
  }
}

/** Text, compared with its entry. Undefined if it was erased or changed: changed text must not cause an erasure. */
export async function provenText(
  db: Pick<Sql, "get">,
  { workspaceId, seq, kind }: { workspaceId: number; seq: number; kind: "input" | "output" },
  hash: string | undefined,
): Promise<string | undefined> {
  const row = await db.get<{ salt: Uint8Array; body: string }>(
    "SELECT salt, body FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = $3",
    [workspaceId, seq, kind],
  );
  return row && isHashOf(hash, row.salt, row.body) ? row.body : undefined;
}
