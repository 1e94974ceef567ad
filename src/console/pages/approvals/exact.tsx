import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { CopyButton } from "../../parts/code.tsx";
import { countText, plural } from "../../parts/text.tsx";
import { countHidden, escaped, escapeOf, hiddenNames, partsOf } from "./hidden.ts";

/** A text in more pieces than this is drawn as one: the escapes are there all the same. */
const MOST_PIECES = 4_000;
const STRING = /"(?:[^"\\]|\\.)*"/g;

/** A text in which nothing is out of sight: what fonts do not draw stands there as an escape. */
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

/** A value as JSON, to its last character; a long one scrolls. */
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
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard (WCAG 2.1.1). */}
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

export function HiddenNote({ count }: { readonly count: number }): JSX.Element {
  return (
    <p class="note-warn small">
      {plural(count, "character")} that nobody sees {count === 1 ? "is" : "are"} written as escapes, such as{" "}
      <code>\u202e</code>. What is meant to be read has few reasons to hold any.
    </p>
  );
}

/** Each string by itself, so that one that is written from right to left does not turn what stands around it. */
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

/** What somebody wrote, at first as far as one reads at a glance. */
export function ExactText({ text, label }: { readonly text: string; readonly label: string }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > SHOWN_LENGTH;
  const hidden = countHidden(text);
  return (
    <div class="stack-small">
      {hidden > 0 && <HiddenNote count={hidden} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard (WCAG 2.1.1). */}
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
