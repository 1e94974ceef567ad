import type { JSX } from "preact";

/** Words of the query that no document contains, and the words searched instead. */
export function Corrected({
  words,
}: {
  readonly words: Readonly<Record<string, readonly string[]>>;
}): JSX.Element | null {
  const found = Object.entries(words).filter(([, meant]) => meant.length > 0);
  if (found.length === 0) return null;
  return (
    <p>
      {found.map(([word, meant]) => (
        <span key={word} class="break">
          No searched document contains <q>{word}</q>; the search used{" "}
          {meant.map((near, index) => (
            <span key={near}>
              {index > 0 && " or "}
              <q>{near}</q>
            </span>
          ))}
          .{" "}
        </span>
      ))}
    </p>
  );
}
