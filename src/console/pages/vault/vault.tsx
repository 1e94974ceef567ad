import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { FileButton } from "../../parts/file-button.tsx";
import { Empty, Page } from "../../parts/page.tsx";
import { notify } from "../../parts/toast.tsx";
import { useSession } from "../../state/session.tsx";
import { useData } from "../../state/use-data.ts";
import { AddFiles } from "./add/add-files.tsx";
import { DropZone } from "./add/drop-zone.tsx";
import { ACCEPTED } from "./add/file-type.ts";
import { PasteText } from "./add/paste-text.tsx";
import { UploadList } from "./add/upload-list.tsx";
import { useUploads } from "./add/use-uploads.ts";
import { addressOfView, type SearchView, searchOf, viewOf } from "./address.ts";
import { AgentsView } from "./browse/agents-view.tsx";
import { DocumentList } from "./browse/documents.tsx";
import { ScopeTree } from "./browse/scope-tree.tsx";
import { type Scopes, useScopes } from "./browse/use-scopes.ts";
import { isBelow } from "./search/reach.tsx";
import { Results } from "./search/results.tsx";
import { SearchForm } from "./search/search-form.tsx";

const NO_ERRORS: ReadonlyMap<string, string> = new Map();

/** The vault: search, documents by scope, and adding documents. */
export function Vault(): JSX.Element {
  const { can } = useSession();
  if (can("vault:read")) return <ReadableVault />;
  return (
    <Page title="Vault">
      <Empty title="You may not read the vault">
        Your token lacks the scope <code>vault:read</code>. Sign in with one that has it, or ask the person
        who issued yours.
      </Empty>
    </Page>
  );
}

function ReadableVault(): JSX.Element {
  const { can } = useSession();
  const { query, route } = useLocation();
  const view = viewOf(query);
  const scopes = useScopes(view.agent);
  const found = useData("POST /v1/vault/search", searchOf(view));
  const [files, setFiles] = useState<readonly File[] | null>(null);
  const [isPasting, setPasting] = useState(false);
  const { uploads, queue } = useUploads();
  const mayWrite = can("vault:write");
  const known = scopes.scopes?.map(({ scope }) => scope) ?? [];
  const isAsking = view.text.trim() !== "";

  return (
    <Page
      title="Vault"
      lead="The documents that agents search. Each has a scope, and an agent finds only documents inside its memory scope."
      actions={
        mayWrite && (
          <>
            <button type="button" onClick={() => setPasting(true)}>
              Paste text
            </button>
            <FileButton accepted={ACCEPTED} label="Upload files" isMain take={setFiles} />
          </>
        )
      }
    >
      <SearchForm
        view={view}
        go={(next) => route(addressOfView(next))}
        errors={(isAsking ? found.problem?.fields : undefined) ?? NO_ERRORS}
      />
      <UploadList uploads={uploads} queue={queue} />
      <div class="vault-columns">
        <ScopeTree view={view} of={scopes} />
        {isAsking ? (
          <Results view={view} found={found} scopes={scopes.scopes} />
        ) : (
          <Browse
            view={view}
            scopes={scopes}
            add={mayWrite ? <FileButton accepted={ACCEPTED} label="Choose files" take={setFiles} /> : null}
          />
        )}
      </div>
      {mayWrite && <DropZone scope={view.scope} take={setFiles} />}
      {files !== null && (
        <AddFiles
          files={files}
          scope={view.scope}
          known={known}
          close={() => setFiles(null)}
          add={(readable, scope) => queue.add(readable, scope)}
        />
      )}
      {isPasting && (
        <PasteText
          scope={view.scope}
          known={known}
          close={() => setPasting(false)}
          added={(document) => notify(`${document.title} was added to ${document.scope}.`)}
        />
      )}
    </Page>
  );
}

function Browse({
  view,
  scopes: { scopes, problem },
  add,
}: {
  readonly view: SearchView;
  readonly scopes: Scopes;
  readonly add: JSX.Element | null;
}): JSX.Element {
  if (view.agent !== "") return <AgentsView view={view} scopes={scopes} problem={problem} />;
  const count = scopes
    ?.filter(({ scope }) => isBelow(view.scope, scope))
    .reduce((sum, { documents }) => sum + documents, 0);
  return <DocumentList scope={view.scope} count={count} add={add} />;
}
