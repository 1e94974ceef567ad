import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from "@tanstack/virtual-core";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows rendered above and below the visible ones. */
const OVERSCAN = 12;

/**
 * A virtual list: ten thousand rows cost as much as the thirty visible ones. Calls `more` when the reader gets near
 * the end.
 */
export function Rows<Item>({
  items,
  rowHeight,
  height,
  label,
  keyOf,
  more,
  kept = null,
  children,
}: {
  readonly items: readonly Item[];
  /** In pixels. */
  readonly rowHeight: number;
  /** Height of the visible part, as a CSS length. */
  readonly height: string;
  readonly label: string;
  readonly keyOf: (item: Item) => string;
  readonly more?: () => void;
  /** Index of a row to scroll into view, whenever it changes. */
  readonly kept?: number | null;
  readonly children: (item: Item) => JSX.Element;
}): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const [, draw] = useState(0);
  const options: VirtualizerOptions<HTMLDivElement, Element> = {
    count: items.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => draw((count) => count + 1),
  };
  const [virtualizer] = useState(() => new Virtualizer(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  useLayoutEffect(() => {
    if (kept !== null) virtualizer.scrollToIndex(kept, { align: "auto" });
  }, [virtualizer, kept]);
  const seen = virtualizer.getVirtualItems();
  const isNearEnd = (seen.at(-1)?.index ?? 0) >= items.length - OVERSCAN - 1;
  useEffect(() => {
    if (isNearEnd) more?.();
    // Runs again after each page, in case the page did not fill the view.
  }, [isNearEnd, items.length, more]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1).
    <section class="rows" ref={frame} style={{ height }} tabIndex={0} aria-label={label}>
      <ul class="rows-space" style={{ height: `${virtualizer.getTotalSize()}px` }}>
        {seen.map(({ index, start }) => {
          const item = items[index];
          return item === undefined ? null : (
            <li
              key={keyOf(item)}
              class="rows-item"
              aria-setsize={items.length}
              aria-posinset={index + 1}
              style={{ height: `${rowHeight}px`, transform: `translateY(${start}px)` }}
            >
              {children(item)}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
