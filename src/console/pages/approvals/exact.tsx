import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { CopyButton } from "../../parts/code.tsx";
import { countText, plural } from "../../parts/text.tsx";
import { countHidden, escaped, escapeOf, hiddenNames, partsOf } from "./hidden.ts";

/** Text in more pieces than this is drawn as one piece. Its escapes stay. */
const MOST_PIECES = 4_000;
const STRING = /"(?:[^"\\]|\\.)*"/g;

/** Text with invisible characters shown as escapes. */
export function Exact({ text }: { readonly text: string }): JSX.Element {
  const parts = partsOf(text);
  if (parts.length > MOST_PIECES) return <>{escaped(text)}</>;
  return (
    <>
      {parts.map((part, index) =>
        part.isHidden ? (
          <span key={index} class="hidden-characters" title={hiddenNames(part.text)}>
            {escapeOf(part.text)}
          </span>
        ) : (
          part.text
        ),
      )}
    </>
  );
}

/** A value as complete JSON. Long values scroll. */
export function ExactJson({
  value,
  label,
  isShort = false,
}: {
  readonly value: unknown;
  readonly label: string;
  readonly isShort?: boolean;
}): JSX.Element {
  const text = JSON.stringify(value, null, 2) ?? "null";
  const hidden = countHidden(text);
  return (
    <div class="stack-small">
      {hidden > 0 && <HiddenNote count={hidden} />}
      <div class="code code-copied">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1). */}
        <section class={isShort ? "code-text code-short" : "code-text"} tabIndex={0} aria-label={label}>
          <pre>
            <JsonPieces text={text} />
          </pre>
        </section>
        <CopyButton text={escaped(text)} />
      </div>
    </div>
  );
}

function HiddenNote({ count }: { readonly count: number }): JSX.Element {
  return (
    <p class="note-warn small">
      {plural(count, "character")} that cannot be seen {count === 1 ? "is" : "are"} shown as escapes, such as{" "}
      <code>\u202e</code>. Ordinary text rarely contains them.
    </p>
  );
}

/** Isolates each string, so that right-to-left text does not reorder what surrounds it. */
function JsonPieces({ text }: { readonly text: string }): JSX.Element {
  const pieces: ComponentChildren[] = [];
  let from = 0;
  for (const match of text.matchAll(STRING)) {
    if (pieces.length > MOST_PIECES) return <>{escaped(text)}</>;
    const end = match.index + match[0].length;
    const isKey = text[end] === ":";
    pieces.push(text.slice(from, match.index));
    pieces.push(
      <bdi key={match.index} class={isKey ? "json-key" : "json-string"}>
        <Exact text={match[0]} />
      </bdi>,
    );
    from = end;
  }
  pieces.push(text.slice(from));
  return <>{pieces}</>;
}

const SHOWN_LENGTH = 3_000;

/** Text written by somebody, shortened until it is expanded. */
export function ExactText({ text, label }: { readonly text: string; readonly label: string }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > SHOWN_LENGTH;
  const hidden = countHidden(text);
  return (
    <div class="stack-small">
      {hidden > 0 && <HiddenNote count={hidden} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1). */}
      <section class="written" tabIndex={0} aria-label={label}>
        <bdi>
          <Exact text={isLong && !isWhole ? `${text.slice(0, SHOWN_LENGTH)} …` : text} />
        </bdi>
      </section>
      {isLong && (
        <span>
          <button
            type="button"
            class="button-small"
            aria-expanded={isWhole}
            onClick={() => setWhole(!isWhole)}
          >
            {isWhole ? "Show less" : `Show all ${countText(text.length)} characters`}
          </button>
        </span>
      )}
    </div>
  );
}
