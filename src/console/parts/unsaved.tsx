import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { guardHistory } from "../state/leaving.ts";
import { Dialog } from "./dialog.tsx";

/**
 * Asks before a page with unsaved input is left: by a link, by the browser's back and forward buttons, and, in the
 * browser's own words, by closing or reloading the tab.
 */
export function Unsaved({ isDirty }: { readonly isDirty: boolean }): JSX.Element | null {
  const { url, route } = useLocation();
  const [leave, setLeave] = useState<{ readonly go: () => void } | null>(null);
  const isLeaving = useRef(false);

  useEffect(() => {
    if (!isDirty) return undefined;
    const clicked = (event: MouseEvent) => {
      const address = isLeaving.current ? undefined : addressOf(event);
      if (address === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      setLeave({ go: () => route(address) });
    };
    const closed = (event: BeforeUnloadEvent) => {
      if (!isLeaving.current) event.preventDefault();
    };
    // Before the router handles the click.
    document.addEventListener("click", clicked, true);
    addEventListener("beforeunload", closed);
    const release = guardHistory({
      address: url,
      ask: (go) =>
        setLeave({
          go: () => {
            release();
            go();
          },
        }),
    });
    return () => {
      release();
      document.removeEventListener("click", clicked, true);
      removeEventListener("beforeunload", closed);
    };
  }, [isDirty, url, route]);

  if (leave === null) return null;
  return (
    <Dialog title="Leave without saving?" close={() => setLeave(null)}>
      <p>Your changes have not been saved and would be lost.</p>
      <div class="dialog-end">
        <button type="button" class="button-main" onClick={() => setLeave(null)}>
          Keep editing
        </button>
        <button
          type="button"
          class="button-bad"
          onClick={() => {
            isLeaving.current = true;
            leave.go();
          }}
        >
          Leave without saving
        </button>
      </div>
    </Dialog>
  );
}

/** The console page that a click leads to; undefined if it leads to the current page or out of the console. */
function addressOf(event: MouseEvent): string | undefined {
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey)
    return undefined;
  const link = event
    .composedPath()
    .find((element): element is HTMLAnchorElement => element instanceof HTMLAnchorElement);
  if (!link || link.origin !== location.origin || !link.pathname.startsWith("/console")) return undefined;
  if (link.target !== "" && link.target !== "_self") return undefined;
  const isHere = link.pathname === location.pathname && (link.search === location.search || link.hash !== "");
  return isHere ? undefined : `${link.pathname}${link.search}`;
}
