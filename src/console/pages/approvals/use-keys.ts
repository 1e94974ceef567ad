import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Handlers by `KeyboardEvent.key`. A handler returns false to leave the key to the browser. */
export type KeyHandlers = Readonly<Record<string, () => boolean>>;

const KEPT = "gatehouse-approval-keys";
const ARROWS: readonly string[] = ["ArrowDown", "ArrowUp"];

/**
 * Single-key shortcuts of the page. Inactive while somebody types, a dialog is open, or a modifier is held. Arrow
 * keys work only within the list; elsewhere they scroll.
 */
export function useKeys(handlers: KeyHandlers, isOn: boolean): void {
  const current = useRef(handlers);
  current.current = handlers;
  // A layout effect, so that keys apply to what is shown.
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
      // A held key may repeat a move, but never a decision.
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

/** Whether shortcuts are on. People who use speech input or press keys by accident can turn them off (WCAG 2.1.4). */
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
        // Without storage, the setting lasts until the page is closed.
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
