import type { JSX } from "preact";
import type { FoundPassage } from "../../../../http/api.ts";
import { addressOfView, documentAddress, type SearchMode, type SearchView } from "../address.ts";
import { type MetadataPairs, pairText } from "../pairs.ts";
import { SourceLink } from "../source-link.tsx";
import { Marked } from "./marked.tsx";
import type { QuestionWords } from "./marks.ts";
import { Why } from "./why.tsx";

/** A passage found. Its title links to the passage in its document. */
export function Result({
  passage,
  words,
  mode,
  view,
}: {
  readonly passage: FoundPassage;
  readonly words: QuestionWords;
  /** The mode actually used. */
  readonly mode: SearchMode;
  readonly view: SearchView;
}): JSX.Element {
  return (
    <li class="card vault-result">
      <div class="vault-result-head">
        <h3>
          <a href={documentAddress(passage.document_id, passage)}>
            <Marked text={passage.title} words={words} />
          </a>
        </h3>
        <a class="chip" href={addressOfView({ ...view, scope: passage.scope === "/" ? "" : passage.scope })}>
          <span class="unseen">Search in </span>
          {passage.scope}
        </a>
      </div>
      <p class="vault-passage">
        <Marked text={passage.text} words={words} />
      </p>
      {(passage.source_uri !== null || Object.keys(passage.metadata).length > 0) && (
        <div class="row small">
          {passage.source_uri !== null && <SourceLink uri={passage.source_uri} />}
          <MetadataLinks of={passage.metadata} view={view} />
        </div>
      )}
      {passage.explain && <Why explain={passage.explain} score={passage.score} mode={mode} />}
    </li>
  );
}

/** A document's metadata; each pair links to the same search filtered by it. */
function MetadataLinks({ of, view }: { readonly of: MetadataPairs; readonly view: SearchView }): JSX.Element {
  return (
    <>
      {Object.entries(of).map(([name, value]) => {
        const pair = pairText(name, value);
        return (
          <a
            key={name}
            class="chip"
            href={addressOfView({ ...view, filter: view.filter === "" ? pair : `${view.filter}\n${pair}` })}
          >
            <span class="unseen">Only with </span>
            {pair}
          </a>
        );
      })}
    </>
  );
}
