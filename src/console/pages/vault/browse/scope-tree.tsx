import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { TextField } from "../../../parts/field.tsx";
import { Loading, ProblemNote } from "../../../parts/problem.tsx";
import { countText } from "../../../parts/text.tsx";
import { addressOfView, type SearchView } from "../address.ts";
import { isBelow } from "../search/reach.tsx";
import { matching, type ScopeNode, treeOf } from "./tree.ts";
import type { Scopes } from "./use-scopes.ts";

/** With at least this many scopes, the tree has a search field. */
const MANY = 15;
/** The maximum number of nodes shown on one level. The rest can be found by searching. */
const SHOWN = 200;

/** The scopes with documents as a tree of links, each with its number of documents. */
export function ScopeTree({ view, of }: { readonly view: SearchView; readonly of: Scopes }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const [wanted, setWanted] = useState("");
  const { scopes, problem, reload } = of;
  const tree = useMemo(() => treeOf(scopes ?? []), [scopes]);
  const shown = matching(tree, wanted.trim().toLowerCase()) ?? tree;
  return (
    <nav class="card vault-scopes" aria-label="Scopes">
      <div class="card-head">
        <h2>Scopes</h2>
        <button
          type="button"
          class="button-small vault-scopes-open"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          {view.scope === "" ? "All scopes" : view.scope}
        </button>
      </div>
      <div class="vault-scopes-body stack-small" data-open={isOpen}>
        <ProblemNote problem={problem} retry={reload} />
        {scopes === undefined && !problem && <Loading />}
        {scopes !== undefined && (
          <>
            {scopes.length > MANY && (
              <TextField label="Find a scope" type="search" value={wanted} change={setWanted} />
            )}
            <ul class="vault-tree">
              <li>
                <ScopeLink view={view} node={tree} name="All scopes" />
              </li>
              <Level nodes={shown.children} view={view} isAllOpen={wanted.trim() !== ""} />
            </ul>
            {wanted.trim() !== "" && shown.children.length === 0 && (
              <p class="muted small">No scope contains this text.</p>
            )}
          </>
        )}
      </div>
    </nav>
  );
}

interface LevelProps {
  readonly nodes: readonly ScopeNode[];
  readonly view: SearchView;
  /** Whether all nodes are expanded, as they are while searching. */
  readonly isAllOpen: boolean;
}

function Level({ nodes, view, isAllOpen }: LevelProps): JSX.Element {
  return (
    <>
      {nodes.slice(0, SHOWN).map((node) => (
        <Branch key={node.path} node={node} view={view} isAllOpen={isAllOpen} />
      ))}
      {nodes.length > SHOWN && (
        <li class="muted small">and {countText(nodes.length - SHOWN)} more: type to find them</li>
      )}
    </>
  );
}

function Branch({
  node,
  view,
  isAllOpen,
}: {
  readonly node: ScopeNode;
  readonly view: SearchView;
  readonly isAllOpen: boolean;
}): JSX.Element {
  const [asked, setAsked] = useState<boolean | null>(null);
  const isOpen = isAllOpen || (asked ?? isBelow(node.path, view.scope));
  return (
    <li>
      <div class="vault-branch">
        {node.children.length > 0 ? (
          <button
            type="button"
            class="button-plain vault-twist"
            aria-expanded={isOpen}
            aria-label={`Scopes below ${node.path}`}
            onClick={() => setAsked(!isOpen)}
          />
        ) : (
          <span class="vault-twist" />
        )}
        <ScopeLink view={view} node={node} name={node.name} />
      </div>
      {isOpen && node.children.length > 0 && (
        <ul>
          <Level nodes={node.children} view={view} isAllOpen={isAllOpen} />
        </ul>
      )}
    </li>
  );
}

function ScopeLink({
  view,
  node: { path, documents },
  name,
}: {
  readonly view: SearchView;
  readonly node: ScopeNode;
  readonly name: string;
}): JSX.Element {
  return (
    <a
      class="vault-scope"
      href={addressOfView({ ...view, scope: path })}
      aria-current={view.scope === path ? "true" : undefined}
    >
      <span class="break">{name}</span>
      <span class="number muted">
        {countText(documents)}
        <span class="unseen"> {documents === 1 ? "document" : "documents"}</span>
      </span>
    </a>
  );
}
