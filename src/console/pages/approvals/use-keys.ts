import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** By `KeyboardEvent.key`. A handler that has nothing to do answers false, and the key stays the browser's. */
export type KeyHandlers = Readonly<Record<string, () => boolean>>;

const KEPT = "gatehouse-approval-keys";
const ARROWS: readonly string[] = ["ArrowDown", "ArrowUp"];

/**
 * Single keys for the page: not while somebody types, a dialog is open, or a modifier is held. Arrows move in the list alone;
 * everywhere else they scroll.
 */
export function useKeys(handlers: KeyHandlers, isOn: boolean): void {
  const current = useRef(handlers);
  current.current = handlers;
  // As soon as it is drawn: a key that is pressed at once is for what is shown.
  useLayoutEffect(() => {
    if (!isOn) return undefined;
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.isComposing || document.querySelector("dialog[open]")) return;
      const { target, key } = event;
      if (target instanceof HTMLElement && isTyped(target)) return;
      if (ARROWS.includes(key) && !(target instanceof HTMLElement && target.closest(".approvals-list")))
        return;
      const handler = Object.hasOwn(current.current, key) ? current.current[key] : undefined;
      // A key that is held down moves on; it decides nothing.
      if (!handler || (event.repeat && !MOVES.includes(key))) return;
      if (handler()) event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [isOn]);
}

const MOVES: readonly string[] = [...ARROWS, "j", "k"];

function isTyped(element: HTMLElement): boolean {
  return element.isContentEditable || element.matches("input, textarea, select");
}

/** Whether single keys do anything: who speaks to the browser, or hits keys by accident, turns them off (WCAG 2.1.4). */
export function useKeysSetting(): readonly [boolean, (isOn: boolean) => void] {
  const [isOn, setOn] = useState(areKept);
  return [
    isOn,
    (next) => {
      setOn(next);
      try {
        if (next) localStorage.removeItem(KEPT);
        else localStorage.setItem(KEPT, "off");
      } catch {
        // It holds until the page is left.
      }
    },
  ];
}

function areKept(): boolean {
  try {
    return localStorage.getItem(KEPT) !== "off";
  } catch {
    return true;
  }
}
