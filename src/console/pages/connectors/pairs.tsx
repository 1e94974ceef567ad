import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { Icon } from "../../parts/icons.tsx";
import { type DraftPair, newPair, pairPath, pairsIn } from "./drafts.ts";
import { SecretInput } from "./secret-input.tsx";

/** Rows of variables or headers. Values may be secrets and are hidden. Several lines can be pasted at once. */
export function Pairs({
  label,
  noun,
  mark,
  hint,
  pairs,
  change,
  path,
  errors,
  open,
}: {
  readonly label: string;
  /** What a row is called: `Variable`. */
  readonly noun: string;
  /** Separates name and value in pasted lines. */
  readonly mark: "=" | ":";
  readonly hint: string;
  readonly pairs: readonly DraftPair[];
  readonly change: (pairs: readonly DraftPair[]) => void;
  /** JSON pointer of the whole record. */
  readonly path: string;
  readonly errors: ReadonlyMap<string, string>;
  /** Values still incomplete, by `#key`. */
  readonly open?: ReadonlyMap<string, string> | undefined;
}): JSX.Element {
  const id = useId();

  function put(key: number, part: Partial<DraftPair>): void {
    change(pairs.map((pair) => (pair.key === key ? { ...pair, ...part } : pair)));
  }

  function paste(event: ClipboardEvent, at: DraftPair): void {
    const text = event.clipboardData?.getData("text") ?? "";
    const found = text.includes(mark) ? pairsIn(text, mark) : undefined;
    if (!found) return;
    event.preventDefault();
    change(
      pairs.flatMap((pair) => (pair.key !== at.key ? [pair] : pair.value === "" ? found : [pair, ...found])),
    );
  }

  return (
    <fieldset class="pairs">
      <legend>{label}</legend>
      {pairs.map((pair, index) => {
        const name = `${noun} ${index + 1}`;
        const wrong = errors.get(pairPath(path, pair)) ?? open?.get(`#${pair.key}`);
        return (
          <div class="pair" key={pair.key}>
            <input
              type="text"
              class="mono"
              aria-label={`${name}: name`}
              aria-invalid={wrong ? "true" : undefined}
              aria-describedby={wrong ? `${id}-${pair.key}` : undefined}
              placeholder={mark === "=" ? "NAME" : "Name"}
              autocomplete="off"
              spellcheck={false}
              value={pair.name}
              onInput={(event) => put(pair.key, { name: event.currentTarget.value })}
              onPaste={(event) => paste(event, pair)}
            />
            <SecretInput
              name={`${name}: value`}
              value={pair.value}
              change={(value) => put(pair.key, { value })}
            />
            <button
              type="button"
              class="button-icon"
              aria-label={`Remove ${noun.toLowerCase()} ${index + 1}`}
              onClick={() => change(pairs.filter(({ key }) => key !== pair.key))}
            >
              <Icon name="close" />
            </button>
            {wrong && (
              <span class="pair-error" id={`${id}-${pair.key}`}>
                {wrong}
              </span>
            )}
          </div>
        );
      })}
      <span class="row">
        <button type="button" class="button-small" onClick={() => change([...pairs, newPair()])}>
          Add a {noun.toLowerCase()}
        </button>
        <span class="muted small">{hint}</span>
      </span>
    </fieldset>
  );
}
