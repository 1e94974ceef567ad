import type { JSX } from "preact";
import type { VaultDocument } from "../../../../http/api.ts";
import { Badge } from "../../../parts/badge.tsx";
import { Loading, ProblemNote } from "../../../parts/problem.tsx";
import { Rows } from "../../../parts/rows.tsx";
import { countText, Time } from "../../../parts/text.tsx";
import { typeName } from "../add/file-type.ts";
import { documentAddress } from "../address.ts";
import { NoDocuments } from "./no-documents.tsx";
import { useDocuments } from "./use-documents.ts";

/** In pixels, as in the style sheet. */
const ROW = 60;

/** The documents in a scope and below it. Only visible rows are rendered. */
export function DocumentList({
  scope,
  count,
  add,
}: {
  readonly scope: string;
  /** The number of documents, if known. */
  readonly count: number | undefined;
  /** The button that adds documents, for readers who may. */
  readonly add: JSX.Element | null;
}): JSX.Element {
  const { items, problem, isLoading, isWhole, isOld, more, reload } = useDocuments(scope);
  const isEmpty = items.length === 0;
  return (
    <section class="stack" aria-labelledby="vault-documents">
      <div class="row-between">
        <h2 id="vault-documents" class="break">
          {scope === "" ? "All documents" : `Documents in ${scope}`}
        </h2>
        {count !== undefined && !isEmpty && (
          <span class="muted small number">
            {countText(Math.max(count, isWhole ? items.length : 0))}, newest first
          </span>
        )}
      </div>
      <ProblemNote problem={problem} retry={reload} />
      {isOld && (
        <p class="row" role="status">
          Documents further down were replaced.
          <button type="button" class="button-small" onClick={reload}>
            Refresh the list
          </button>
        </p>
      )}
      {isEmpty &&
        problem === null &&
        (isLoading || !isWhole ? <Loading /> : <NoDocuments scope={scope} add={add} />)}
      {!isEmpty && (
        <Rows
          items={items}
          rowHeight={ROW}
          height={`min(${items.length * ROW + 2}px, max(20rem, 70dvh))`}
          label={scope === "" ? "Documents" : `Documents in ${scope}`}
          keyOf={({ id }) => id}
          more={more}
        >
          {(document) => <Row document={document} />}
        </Rows>
      )}
    </section>
  );
}

function Row({ document }: { readonly document: VaultDocument }): JSX.Element {
  return (
    <div class="vault-row">
      <a class="cut" href={documentAddress(document.id)}>
        {document.title}
      </a>
      <span class="vault-row-end small muted">
        {document.vectors === "pending" && <Badge tone="warn" text="vectors pending" />}
        <Time at={document.updated_at} />
      </span>
      <span class="small muted cut">
        <span class="mono">{document.scope}</span> · {typeName(document.content_type)} ·{" "}
        {countText(document.characters)} characters
        {document.source_uri !== null && ` · ${document.source_uri}`}
      </span>
    </div>
  );
}
