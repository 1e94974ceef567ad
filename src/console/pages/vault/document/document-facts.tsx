import type { JSX } from "preact";
import type { VaultDocument } from "../../../../http/api.ts";
import { Actor } from "../../../parts/actor.tsx";
import { Badge } from "../../../parts/badge.tsx";
import { CopyButton } from "../../../parts/code.tsx";
import { Card, Facts } from "../../../parts/page.tsx";
import { countText, Time } from "../../../parts/text.tsx";
import { useSession } from "../../../state/session.tsx";
import { typeName } from "../add/file-type.ts";
import { addressOfView, viewOf } from "../address.ts";
import { type MetadataPairs, pairText } from "../pairs.ts";
import { SourceLink } from "../source-link.tsx";

export function DocumentFacts({
  document,
  lookAgain,
}: {
  readonly document: VaultDocument;
  readonly lookAgain: () => void;
}): JSX.Element {
  const { can } = useSession();
  return (
    <Card title="About it">
      <Facts
        of={[
          ["Scope", <ScopeLink key="scope" scope={document.scope} />],
          [
            "Type",
            <span key="type" title={document.content_type}>
              {typeName(document.content_type)}
            </span>,
          ],
          [
            "Characters",
            <span key="characters" class="number">
              {countText(document.characters)}
            </span>,
          ],
          [
            "Passages",
            <span key="chunks" class="number">
              {countText(document.chunks)}
            </span>,
          ],
          ["Vectors", <Vectors key="vectors" vectors={document.vectors} lookAgain={lookAgain} />],
          [
            "Source",
            document.source_uri === null ? (
              "Not stated"
            ) : (
              <SourceLink key="source" uri={document.source_uri} />
            ),
          ],
          ["Metadata", <Metadata key="metadata" of={document.metadata} />],
          ["Added by", <AddedBy key="by" actor={document.created_by} canFollow={can("ledger:read")} />],
          ["Added", <Time key="added" at={document.created_at} whole />],
          ["Changed", <Time key="changed" at={document.updated_at} whole />],
          [
            "Id",
            <span key="id" class="row">
              <code class="break">{document.id}</code>
              <CopyButton text={document.id} />
            </span>,
          ],
          [
            "SHA-256",
            <code key="hash" class="break small">
              {document.content_hash}
            </code>,
          ],
        ]}
      />
    </Card>
  );
}

function ScopeLink({ scope }: { readonly scope: string }): JSX.Element {
  return (
    <a class="mono break" href={addressOfView({ ...viewOf({}), scope: scope === "/" ? "" : scope })}>
      {scope}
    </a>
  );
}

/** There is no event for a finished embedding, so the reader asks for the state. */
function Vectors({
  vectors,
  lookAgain,
}: {
  readonly vectors: string;
  readonly lookAgain: () => void;
}): JSX.Element {
  if (vectors === "ready") return <Badge tone="good" text="ready" />;
  return (
    <span class="row">
      <Badge tone="warn" text="pending" />
      <button type="button" class="button-small" onClick={lookAgain}>
        Search again
      </button>
      <span class="small muted">Word search already finds it.</span>
    </span>
  );
}

function Metadata({ of }: { readonly of: MetadataPairs }): JSX.Element {
  const pairs = Object.entries(of);
  if (pairs.length === 0) return <span class="muted">None</span>;
  return (
    <span class="row">
      {pairs.map(([name, value]) => (
        <span key={name} class="chip">
          {pairText(name, value)}
        </span>
      ))}
    </span>
  );
}

function AddedBy({ actor, canFollow }: { readonly actor: string; readonly canFollow: boolean }): JSX.Element {
  if (!canFollow) return <Actor of={actor} />;
  return (
    <a class="break" href={`/console/ledger?${new URLSearchParams({ actor })}`}>
      <Actor of={actor} />
    </a>
  );
}
