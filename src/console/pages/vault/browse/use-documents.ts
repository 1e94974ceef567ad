import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { VaultDocument } from "../../../../http/api.ts";
import { call } from "../../../api/client.ts";
import { asProblem } from "../../../api/problem.ts";
import { useSession } from "../../../state/session.tsx";
import { type Pages, usePages } from "../../../state/use-pages.ts";
import { useSoon } from "../../../state/use-soon.ts";
import { isBelow } from "../search/reach.tsx";

export interface Documents extends Pages<VaultDocument> {
  /** Whether documents further down have been replaced, so that the list is out of date. */
  readonly isOld: boolean;
}

const PAGE = 100;

/** The documents in a scope and below it, newest first, updated live. */
export function useDocuments(scope: string): Documents {
  const { feed } = useSession();
  const pages = usePages<VaultDocument>(`documents:${scope}`, (cursor, signal) =>
    readPage(scope, cursor, signal),
  );
  const { items, change, reload } = pages;
  const shown = useRef(items);
  shown.current = items;
  const written = useRef(new Set<string>());
  const current = useRef(scope);
  const [isOld, setOld] = useState(false);
  if (current.current !== scope) {
    current.current = scope;
    written.current.clear();
  }
  useEffect(() => setOld(false), [scope]);

  const reloadAll = useCallback(() => {
    setOld(false);
    reload();
  }, [reload]);

  /** New documents are at the start of the list. The rest is not read again for each change. */
  async function readNewest(): Promise<void> {
    const changed = new Set(written.current);
    written.current.clear();
    try {
      const newest = await readPage(scope, undefined);
      if (current.current !== scope) return;
      const read = new Map(newest.data.map((document) => [document.id, document]));
      if (shown.current.some(({ id }) => changed.has(id) && !read.has(id))) setOld(true);
      change((before) => [...newest.data, ...before.filter(({ id }) => !read.has(id))]);
    } catch (error) {
      // Reading the list again shows the problem and offers a retry.
      if (asProblem(error).status !== 401) reload();
    }
  }
  const soon = useSoon(() => void readNewest());

  useEffect(
    () =>
      feed.listen("document.changed", ({ id, scope: path, change: how }) => {
        if (how === "deleted" || !isBelow(scope, path)) {
          written.current.delete(id);
          change((before) => before.filter((document) => document.id !== id));
          return;
        }
        written.current.add(id);
        soon();
      }),
    [feed, scope, change, soon],
  );
  return { ...pages, reload: reloadAll, isOld };
}

function readPage(scope: string, cursor: string | undefined, signal?: AbortSignal) {
  return call("GET /v1/vault/documents", {
    query: { limit: PAGE, scope, ...(cursor === undefined ? {} : { cursor }) },
    ...(signal ? { signal } : {}),
  });
}
