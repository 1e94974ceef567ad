import type { JSX } from "preact";

/** Short strings side by side, or the word `none` if there are none. */
export function Chips({ of, none }: { readonly of: readonly string[]; readonly none: string }): JSX.Element {
  if (of.length === 0) return <span class="muted">{none}</span>;
  return (
    <span class="chips">
      {of.map((text) => (
        <span key={text} class="chip">
          {text}
        </span>
      ))}
    </span>
  );
}
