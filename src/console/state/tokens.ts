import { useEffect, useState } from "preact/hooks";
import type { Token } from "../../http/api.ts";
import { call } from "../api/client.ts";
import { useSession } from "./session.tsx";

export type TokenChoice = Pick<Token, "name" | "person">;

/**
 * Minimum time between two reads. Each read is a ledger entry, so one read serves the whole page, and an unknown id
 * waits for the next one.
 */
const SHORTEST_MS = 60_000;
const PAGE = 200;
/** If a workspace has more tokens than these pages hold, the rest are shown by id. */
const MOST_PAGES = 5;

/** Names of the tokens that the session may list. Read when one is first needed, and again for an unknown id. */
class TokenNames {
  readonly #listeners = new Set<() => void>();
  /** Ids that were not found: revoked tokens, for example, are not listed. */
  readonly #missing = new Set<string>();
  readonly #wanted = new Set<string>();
  #names: ReadonlyMap<string, TokenChoice> = new Map();
  #readAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;

  get(id: string): TokenChoice | undefined {
    return this.#names.get(id);
  }

  want(id: string): void {
    if (this.#names.has(id) || this.#missing.has(id)) return;
    this.#wanted.add(id);
    this.#timer ??= setTimeout(() => void this.#read(), Math.max(0, this.#readAt + SHORTEST_MS - Date.now()));
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async #read(): Promise<void> {
    this.#readAt = Date.now();
    const wanted = [...this.#wanted];
    this.#wanted.clear();
    try {
      const found = await readAll();
      this.#names = new Map(found.map(({ id, name, person }) => [id, { name, person }]));
      for (const id of wanted) if (!this.#names.has(id)) this.#missing.add(id);
    } catch {
      // Show the ids, and look again when the next name is needed.
    }
    this.#timer = undefined;
    for (const id of this.#wanted) this.want(id);
    for (const listener of this.#listeners) listener();
  }
}

async function readAll(): Promise<readonly Token[]> {
  const found: Token[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = await call("GET /v1/tokens", {
      query: { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) },
    });
    found.push(...answer.data);
    if (answer.next_cursor === null) break;
    cursor = answer.next_cursor;
  }
  return found;
}

let current: { readonly session: string; readonly names: TokenNames } | null = null;

function namesOf(session: string): TokenNames {
  if (current?.session !== session) current = { session, names: new TokenNames() };
  return current.names;
}

/** The name of a token; undefined while unknown, or if the reader may not list tokens. */
export function useTokenName(id: string | null): TokenChoice | undefined {
  const { session, can } = useSession();
  const names = namesOf(session.session?.id ?? session.actor);
  const wanted = id !== null && can("tokens:write") ? id : null;
  const [, draw] = useState(0);
  useEffect(() => {
    if (wanted === null) return undefined;
    names.want(wanted);
    return names.listen(() => draw((count) => count + 1));
  }, [names, wanted]);
  return wanted === null ? undefined : names.get(wanted);
}
