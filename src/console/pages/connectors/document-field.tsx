import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { TextArea, TextField } from "../../parts/field.tsx";
import { bytesText } from "./answer.ts";
import type { OpenApiDraft } from "./drafts.ts";

const SOURCES: readonly (readonly [OpenApiDraft["source"], string])[] = [
  ["url", "From an address"],
  ["text", "As text"],
  ["file", "From a file"],
];
/** Maximum size of a file in bytes: a request may be 10 MiB long, and text gets longer when it is encoded as JSON. */
const MOST_BYTES = 8_000_000;

/** The OpenAPI document: an address for the server to read, text, or a file. */
export function DocumentField({
  draft,
  change,
  error,
}: {
  readonly draft: OpenApiDraft;
  readonly change: (draft: OpenApiDraft) => void;
  readonly error: string | undefined;
}): JSX.Element {
  const id = useId();
  const [isOver, setOver] = useState(false);
  const [fileError, setFileError] = useState<string | undefined>(undefined);

  async function take(file: File | undefined): Promise<void> {
    if (!file) return;
    if (file.size > MOST_BYTES) {
      setFileError(`${file.name} is ${bytesText(file.size)}; the limit is ${bytesText(MOST_BYTES)}.`);
      return;
    }
    setFileError(undefined);
    change({ ...draft, source: "file", file: { name: file.name, text: await file.text() } });
  }

  return (
    <fieldset
      class="document"
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void take(event.dataTransfer?.files[0]);
      }}
    >
      <legend>OpenAPI document</legend>
      <div class="row">
        {SOURCES.map(([source, label]) => (
          <label key={source} class="choice">
            <input
              type="radio"
              name={`${id}-source`}
              checked={draft.source === source}
              onChange={() => change({ ...draft, source })}
            />
            {label}
          </label>
        ))}
      </div>
      {draft.source === "url" && (
        <TextField
          label="Address of the document"
          type="url"
          placeholder="https://api.example.com/openapi.json"
          value={draft.url}
          change={(url) => change({ ...draft, url })}
          error={error}
        />
      )}
      {draft.source === "text" && (
        <TextArea
          label="The document, as JSON or YAML"
          isCode
          rows={10}
          value={draft.text}
          change={(text) => change({ ...draft, text })}
          error={error}
        />
      )}
      {draft.source === "file" && (
        <div class="field">
          <label for={`${id}-file`}>File (JSON or YAML)</label>
          <input
            id={`${id}-file`}
            type="file"
            accept=".json,.yaml,.yml,application/json"
            aria-describedby={`${id}-taken`}
            aria-invalid={error ? "true" : undefined}
            onChange={(event) => void take(event.currentTarget.files?.[0])}
          />
          <span id={`${id}-taken`} class={(fileError ?? error) ? "error" : "hint"} role="status">
            {fileError ??
              (draft.file
                ? `${draft.file.name}, ${bytesText(new Blob([draft.file.text]).size)}${error ? `: ${error}` : ""}`
                : (error ?? "Choose one, or drop it here."))}
          </span>
        </div>
      )}
    </fieldset>
  );
}
