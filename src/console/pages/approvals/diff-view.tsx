import type { JSX } from "preact";
import { type DiffLine, diffLines } from "./diff.ts";
import { prettyJson } from "./json.ts";

const MARKS = { same: " ", removed: "−", added: "+" } as const;
const WORDS = { same: "", removed: "Removed: ", added: "Added: " } as const;

/** How a value has changed, as a line diff of its JSON. */
export function JsonDiff({
  before,
  after,
  label,
}: {
  readonly before: unknown;
  readonly after: unknown;
  readonly label: string;
}): JSX.Element {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1). */}
      <section class="code-text code-short" tabIndex={0} aria-label={label}>
        {diffLines(prettyJson(before), prettyJson(after)).map((line, index) => (
          <Line key={index} line={line} />
        ))}
      </section>
    </div>
  );
}

function Line({ line: { kind, text } }: { readonly line: DiffLine }): JSX.Element {
  return (
    <pre class={`diff-line diff-${kind}`}>
      <span aria-hidden="true">{MARKS[kind]} </span>
      <span class="unseen">{WORDS[kind]}</span>
      <bdi>{text}</bdi>
    </pre>
  );
}
