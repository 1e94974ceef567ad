import type { JSX } from "preact";
import type { VaultScope } from "../../../../http/api.ts";
import { plural } from "../../../parts/text.tsx";
import { useSession } from "../../../state/session.tsx";
import type { SearchView } from "../address.ts";

/** Explains what the search could see, so the reader knows what the results cannot contain. */
export function Reach({
  view: { scope, agent, filter },
  scopes,
}: {
  readonly view: SearchView;
  /** The visible scopes with documents; undefined before they are read. */
  readonly scopes: readonly VaultScope[] | undefined;
}): JSX.Element {
  const { session } = useSession();
  const eyes = session.agent ?? agent;
  const inside = scopes?.filter(({ scope: path }) => isBelow(scope, path));
  const documents = inside?.reduce((sum, { documents: count }) => sum + count, 0);
  return (
    <p class="note">
      {eyes === "" ? (
        <>Searched as yourself: you see the whole workspace.</>
      ) : (
        <>
          Searched as the agent <strong>{eyes}</strong>: these are the results it would get. Nothing outside
          its memory scope is shown or affects the ranking.
        </>
      )}{" "}
      {scope !== "" && (
        <>
          Limited to <code class="break">{scope}</code> and below.{" "}
        </>
      )}
      {documents !== undefined && inside !== undefined && (
        <>
          That is {plural(documents, "document")} in {plural(inside.length, "scope")}
          {filter !== "" && ", limited to those with the metadata"}.
        </>
      )}
    </p>
  );
}

/** Whether a path is a given path or below it. Everything is below the empty path. */
export function isBelow(scope: string, path: string): boolean {
  return scope === "" || path === scope || path.startsWith(`${scope}/`);
}
