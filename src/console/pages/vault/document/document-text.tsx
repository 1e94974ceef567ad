import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { TextPassage } from "./passage.ts";
import { type Slice, slicesOf } from "./slices.ts";

/** A document's text, scrolled to a marked passage. */
export function DocumentText({
  text,
  passage,
}: {
  readonly text: string;
  readonly passage: TextPassage | null;
}): JSX.Element {
  const slices = useMemo(() => slicesOf(text), [text]);
  const marked = useRef<HTMLElement>(null);
  const start = passage?.start;
  useEffect(() => {
    let left = 3;
    let frame = 0;
    // Slices rendered along the way differ from their estimated heights, so the passage moves.
    const show = () => {
      marked.current?.scrollIntoView({ block: "center" });
      left -= 1;
      if (left > 0) frame = requestAnimationFrame(show);
    };
    frame = requestAnimationFrame(show);
    return () => cancelAnimationFrame(frame);
  }, [text, start]);

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1).
    <section class="vault-text" tabIndex={0} aria-label="Text of the document">
      {slices.map((slice) => (
        <div
          key={slice.start}
          class="vault-slice"
          style={{ containIntrinsicBlockSize: `auto ${slice.lines * 1.6}em` }}
        >
          {passage && passage.start < slice.end && passage.end > slice.start ? (
            <MarkedSlice
              slice={slice}
              passage={passage}
              first={passage.start >= slice.start ? marked : undefined}
            />
          ) : (
            slice.text
          )}
        </div>
      ))}
    </section>
  );
}

function MarkedSlice({
  slice: { start, text },
  passage,
  first,
}: {
  readonly slice: Slice;
  readonly passage: TextPassage;
  /** The slice in which the passage begins: receives the element of the mark. */
  readonly first: { current: HTMLElement | null } | undefined;
}): JSX.Element {
  const from = Math.max(0, passage.start - start);
  const to = Math.min(text.length, passage.end - start);
  return (
    <>
      {text.slice(0, from)}
      <mark ref={first ?? null}>{text.slice(from, to)}</mark>
      {text.slice(to)}
    </>
  );
}
