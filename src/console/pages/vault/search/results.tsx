import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { SearchAnswer, VaultScope } from "../../../../http/api.ts";
import { Loading, ProblemNote } from "../../../parts/problem.tsx";
import { durationText, plural } from "../../../parts/text.tsx";
import { useSession } from "../../../state/session.tsx";
import type { Loaded } from "../../../state/use-data.ts";
import { MODES, type SearchView } from "../address.ts";
import { Corrected } from "./corrected.tsx";
import { wordsOf } from "./marks.ts";
import { NothingFound } from "./nothing.tsx";
import { isBelow, Reach } from "./reach.tsx";
import { Result } from "./result.tsx";

/** The results of a search, with a description of what was searched. */
export function Results({
  view,
  found,
  scopes,
}: {
  readonly view: SearchView;
  readonly found: Loaded<SearchAnswer>;
  readonly scopes: readonly VaultScope[] | undefined;
}): JSX.Element {
  const { data, problem, isLoading, reload } = found;
  return (
    <section class="stack" aria-labelledby="vault-results" aria-busy={isLoading}>
      <div class="row-between">
        <h2 id="vault-results" class="break">
          {data ? plural(data.results.length, "passage") : "Passages"} for “{view.text.slice(0, 200)}”
        </h2>
        {data && (
          <span class="muted small" role="status">
            {modeText(data, view)}, in {durationText(data.took_ms)}
          </span>
        )}
      </div>
      <ProblemNote problem={problem} retry={reload} />
      {data === undefined && !problem && <Loading />}
      {data && problem === null && (
        <>
          <Reach view={view} scopes={scopes} />
          <ChangedSince key={`${view.text} ${data.took_ms}`} scope={view.scope} reload={reload} />
          <Found view={view} answer={data} />
        </>
      )}
    </section>
  );
}

function Found({ view, answer }: { readonly view: SearchView; readonly answer: SearchAnswer }): JSX.Element {
  const corrected = answer.explain?.corrected ?? {};
  const words = useMemo(() => wordsOf(view.text, answer.explain?.corrected ?? {}), [view.text, answer]);
  return (
    <>
      <Corrected words={corrected} />
      {answer.results.length === 0 ? (
        <NothingFound view={view} />
      ) : (
        <ol class="vault-results">
          {answer.results.map((passage) => (
            <Result key={passage.chunk_id} passage={passage} words={words} mode={answer.mode} view={view} />
          ))}
        </ol>
      )}
    </>
  );
}

/**
 * Reports that documents have changed, and searches again only on request, because results that move on their own are
 * hard to read.
 */
function ChangedSince({
  scope,
  reload,
}: {
  readonly scope: string;
  readonly reload: () => void;
}): JSX.Element | null {
  const { feed } = useSession();
  const [isChanged, setChanged] = useState(false);
  useEffect(
    () =>
      feed.listen("document.changed", ({ scope: path }) => {
        if (isBelow(scope, path)) setChanged(true);
      }),
    [feed, scope],
  );
  if (!isChanged) return null;
  return (
    <p class="row" role="status">
      Documents have changed since this search.
      <button
        type="button"
        class="button-small"
        onClick={() => {
          setChanged(false);
          reload();
        }}
      >
        Search again
      </button>
    </p>
  );
}

function modeText({ mode }: SearchAnswer, view: SearchView): string {
  const name = MODES.find(([known]) => known === mode)?.[1] ?? mode;
  return mode === view.mode ? name : `${name}, because there are no vectors to search`;
}
