import type { JSX } from "preact";
import type { VaultScope } from "../../../../http/api.ts";
import type { ApiProblem } from "../../../api/problem.ts";
import { Empty } from "../../../parts/page.tsx";
import { Loading, ProblemNote } from "../../../parts/problem.tsx";
import { plural } from "../../../parts/text.tsx";
import { addressOfView, type SearchView } from "../address.ts";

/** Explains what an agent can see, before any search. */
export function AgentsView({
  view,
  scopes,
  problem,
}: {
  readonly view: SearchView;
  /** The scopes with documents that the agent can see. */
  readonly scopes: readonly VaultScope[] | undefined;
  readonly problem: ApiProblem | null;
}): JSX.Element {
  if (scopes === undefined) return problem ? <ProblemNote problem={problem} /> : <Loading />;
  const documents = scopes.reduce((sum, { documents: count }) => sum + count, 0);
  return (
    <Empty
      title={`Searching as ${view.agent}`}
      action={
        <a class="button" href={addressOfView({ ...view, agent: "" })}>
          Search as yourself
        </a>
      }
    >
      {documents === 0 ? (
        <>
          There are no documents in this agent’s memory scope, so it finds nothing. Change its memory scope,
          or add documents to it.
        </>
      ) : (
        <>
          This agent sees {plural(documents, "document")} in {plural(scopes.length, "scope")}, listed under
          Scopes. Search above to see what it would find.
        </>
      )}
    </Empty>
  );
}
