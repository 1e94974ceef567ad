import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso";
import type { VaultDocument } from "../../../http/api.ts";
import { Card, Empty, Page } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { notify } from "../../parts/toast.tsx";
import { useSession } from "../../state/session.tsx";
import { useData } from "../../state/use-data.ts";
import { useSoon } from "../../state/use-soon.ts";
import { addressOfView, VAULT, viewOf } from "./address.ts";
import { DeleteDocument } from "./document/delete-document.tsx";
import { DocumentFacts } from "./document/document-facts.tsx";
import { DocumentText } from "./document/document-text.tsx";
import { passageOf, type TextPassage } from "./document/passage.ts";
import { ReplaceDocument } from "./document/replace-document.tsx";

type Document = VaultDocument & { readonly text: string };

/** A document's text, with the passage from the address marked. */
export function DocumentPage(): JSX.Element {
  const { id = "" } = useRoute().params;
  const { feed, can } = useSession();
  const { data, problem, reload } = useData(
    "GET /v1/vault/documents/:id",
    can("vault:read") ? { params: { id } } : null,
  );
  // The text may be long, so it is read again only if this document changes.
  const soon = useSoon(reload);
  useEffect(
    () =>
      feed.listen("document.changed", ({ id: changed }) => {
        if (changed === id) soon();
      }),
    [feed, id, soon],
  );

  if (!can("vault:read")) {
    return (
      <Page title="Document">
        <Empty title="You may not read the vault">
          Your token lacks the scope <code>vault:read</code>.
        </Empty>
      </Page>
    );
  }
  if (problem?.status === 404) return <Gone />;
  if (data === undefined) {
    return (
      <Page title="Document">{problem ? <ProblemNote problem={problem} retry={reload} /> : <Loading />}</Page>
    );
  }
  return (
    <Page
      title={data.title}
      lead={<Way scope={data.scope} />}
      actions={<Actions document={data} changed={reload} />}
    >
      <ProblemNote problem={problem} retry={reload} />
      <Content document={data} reload={reload} />
    </Page>
  );
}

function Content({
  document,
  reload,
}: {
  readonly document: Document;
  readonly reload: () => void;
}): JSX.Element {
  const { query, path } = useLocation();
  const asked = passageOf(query);
  const passage = asked && asked.end <= document.text.length ? asked : null;
  return (
    <div class="vault-document">
      <Card title="Text">
        {asked && <PassageNote passage={passage} path={path} />}
        <DocumentText text={document.text} passage={passage} />
      </Card>
      <DocumentFacts document={document} lookAgain={reload} />
    </div>
  );
}

function PassageNote({
  passage,
  path,
}: {
  readonly passage: TextPassage | null;
  readonly path: string;
}): JSX.Element {
  return (
    <p class="small row">
      {passage ? (
        <span>
          The passage from character <span class="number">{passage.start}</span> to{" "}
          <span class="number">{passage.end}</span> is marked.
        </span>
      ) : (
        <span>The text ends before this passage: the document has been replaced since.</span>
      )}
      <a href={path}>Show it unmarked</a>
    </p>
  );
}

function Way({ scope }: { readonly scope: string }): JSX.Element {
  const names = scope === "/" ? [] : scope.split("/");
  return (
    <span class="break">
      <a href={VAULT}>Vault</a>
      {names.map((name, index) => {
        const path = names.slice(0, index + 1).join("/");
        return (
          <span key={path}>
            {" / "}
            <a href={addressOfView({ ...viewOf({}), scope: path })}>{name}</a>
          </span>
        );
      })}
    </span>
  );
}

function Actions({
  document,
  changed,
}: {
  readonly document: Document;
  readonly changed: () => void;
}): JSX.Element | null {
  const { can } = useSession();
  const { route } = useLocation();
  const [asked, setAsked] = useState<"replace" | "delete" | null>(null);
  if (!can("vault:write")) return null;
  const close = () => setAsked(null);
  return (
    <>
      <button type="button" onClick={() => setAsked("replace")}>
        Replace
      </button>
      <button type="button" class="button-bad" onClick={() => setAsked("delete")}>
        Delete
      </button>
      {asked === "replace" && (
        <ReplaceDocument
          document={document}
          close={close}
          replaced={() => {
            notify("The document has been replaced.");
            changed();
          }}
        />
      )}
      {asked === "delete" && (
        <DeleteDocument
          document={document}
          close={close}
          deleted={() => {
            notify(`${document.title} has been deleted.`);
            route(addressOfView({ ...viewOf({}), scope: document.scope === "/" ? "" : document.scope }));
          }}
        />
      )}
    </>
  );
}

/** Also shown for a document that was visible until now: nothing of it remains, not even its title. */
function Gone(): JSX.Element {
  return (
    <Page title="Document">
      <Empty
        title="There is no such document"
        action={
          <a class="button" href={VAULT}>
            All documents
          </a>
        }
      >
        It was deleted, or you may not see its scope. Deleted documents are removed from the server’s files,
        but the ledger still records them.
      </Empty>
    </Page>
  );
}
