import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { Field } from "../../../parts/field.tsx";
import { ACCEPTED, MOST_BYTES, sizeText } from "../add/file-type.ts";

/** The source of a document's new content. */
export function FileChoice({
  isFile,
  choose,
  take,
  error,
  share,
}: {
  readonly isFile: boolean;
  readonly choose: (isFile: boolean) => void;
  readonly take: (file: File | null) => void;
  readonly error: string | undefined;
  /** The part of the file sent so far, 0 to 1; null if none is being sent. */
  readonly share: number | null;
}): JSX.Element {
  const name = useId();
  return (
    <fieldset>
      <legend>Content</legend>
      <div class="row vault-choice">
        {[false, true].map((value) => (
          <label key={String(value)} class="row">
            <input type="radio" name={name} checked={isFile === value} onChange={() => choose(value)} />
            {value ? "From a file" : "Typed text"}
          </label>
        ))}
      </div>
      {isFile && (
        <Field label="File" hint={`At most ${sizeText(MOST_BYTES)}.`} error={error}>
          {(described) => (
            <input
              {...described}
              type="file"
              accept={ACCEPTED}
              onChange={(event) => take(event.currentTarget.files?.[0] ?? null)}
            />
          )}
        </Field>
      )}
      {share !== null && (
        <span class="vault-upload-state">
          <progress value={share} max={1} aria-label="Sent" />
          <span class="number small" role="status">
            {share < 1 ? `${Math.floor(share * 100)}%` : "The server is reading it …"}
          </span>
        </span>
      )}
    </fieldset>
  );
}
