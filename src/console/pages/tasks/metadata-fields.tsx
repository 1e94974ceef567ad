import type { JSX } from "preact";

const MOST = 16;

type MetadataPair = readonly [key: string, value: string];

/** Up to 16 key-value pairs attached to a task. Pairs without a key are left out. */
export function MetadataFields({
  pairs,
  error,
  change,
}: {
  readonly pairs: readonly MetadataPair[];
  readonly error: string | undefined;
  readonly change: (pairs: readonly MetadataPair[]) => void;
}): JSX.Element {
  const set = (index: number, pair: MetadataPair) => change(pairs.with(index, pair));
  return (
    <fieldset>
      <legend>Metadata</legend>
      {pairs.map(([key, value], index) => (
        <div key={index} class="metadata-pair">
          <input
            aria-label={`Key ${index + 1}`}
            placeholder="Key"
            maxLength={64}
            value={key}
            onInput={(event) => set(index, [event.currentTarget.value, value])}
          />
          <input
            aria-label={`Value ${index + 1}`}
            placeholder="Value"
            maxLength={512}
            value={value}
            onInput={(event) => set(index, [key, event.currentTarget.value])}
          />
          <button
            type="button"
            class="button-plain"
            aria-label={`Remove pair ${index + 1}`}
            onClick={() => change(pairs.filter((_, other) => other !== index))}
          >
            Remove
          </button>
        </div>
      ))}
      {error && <span class="error">{error}</span>}
      {pairs.length < MOST && (
        <div>
          <button type="button" class="button-small" onClick={() => change([...pairs, ["", ""]])}>
            Add metadata
          </button>
        </div>
      )}
    </fieldset>
  );
}
