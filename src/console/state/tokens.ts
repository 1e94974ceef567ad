import { useEffect, useState } from "preact/hooks";
import type { Token } from "../../http/api.ts";
import { call } from "../api/client.ts";
import { useSession } from "./session.tsx";

export type KnownToken = Pick<Token, "name" | "person">;

/** Each reading is an entry in the ledger: one serves all that a page shows, and an id that it lacks waits so long. */
const SHORTEST_MS = 60_000;
const PAGE = 200;
/** A workspace with more tokens than these pages hold shows the others by their ids. */
const MOST_PAGES = 5;

/** The names of the tokens that one session may list: read when one is first asked for, and again for one that came since. */
class TokenNames {
  readonly #listeners = new Set<() => void>();
  /** Looked for in vain: revoked tokens are in no list. */
  readonly #missing = new Set<string>();
  readonly #wanted = new Set<string>();
  #names: ReadonlyMap<string, KnownToken> = new Map();
  #readAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;

  get(id: string): KnownToken | undefined {
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
      // The ids are shown as they are, and looked for again with the next one that is wanted.
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

/** A token's name, where the reader may list tokens; undefined while it is not known, and where it is not to be had. */
export function useTokenName(id: string | null): KnownToken | undefined {
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
