import type { JSX } from "preact";
import { Lines, TextField } from "../../../parts/field.tsx";
import { type DocumentDraft, metadataError } from "./document-draft.ts";
import { ScopeField } from "./scope-field.tsx";

/** A document's fields other than its content. */
export function DocumentFields({
  draft,
  change,
  known,
  errors,
}: {
  readonly draft: DocumentDraft;
  readonly change: (draft: DocumentDraft) => void;
  readonly known: readonly string[];
  readonly errors: ReadonlyMap<string, string>;
}): JSX.Element {
  return (
    <>
      <TextField
        label="Title"
        required
        value={draft.title}
        change={(title) => change({ ...draft, title })}
        error={errors.get("/title")}
      />
      <ScopeField
        value={draft.scope}
        change={(scope) => change({ ...draft, scope })}
        known={known}
        error={errors.get("/scope")}
      />
      <TextField
        label="Source (optional)"
        placeholder="https://wiki.example.com/returns"
        value={draft.source}
        change={(source) => change({ ...draft, source })}
        hint="The address it comes from."
        error={errors.get("/source_uri")}
      />
      <Lines
        label="Metadata (optional)"
        rows={2}
        placeholder={"lang=en\nyear=2026"}
        values={draft.metadata}
        change={(metadata) => change({ ...draft, metadata })}
        hint="One name=value per line. Searches can filter by it."
        error={metadataError(errors)}
      />
    </>
  );
}
