import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
}

const SHOWN_MS = 6_000;
const MOST = 4;
let last = 0;
let shown: readonly Toast[] = [];
const listeners = new Set<() => void>();

function show(toasts: readonly Toast[]): void {
  shown = toasts;
  for (const listener of listeners) listener();
}

/** Shows a message for a few seconds. */
export function notify(text: string, { isBad = false }: { readonly isBad?: boolean } = {}): void {
  last += 1;
  const id = last;
  show([...shown, { id, text, isBad }].slice(-MOST));
  setTimeout(() => show(shown.filter((toast) => toast.id !== id)), SHOWN_MS);
}

export function Toasts(): JSX.Element {
  const [toasts, setToasts] = useState(shown);
  useEffect(() => {
    const listener = () => setToasts(shown);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.map(({ id, text, isBad }) => (
        <div key={id} class={isBad ? "toast toast-bad" : "toast"}>
          <span class="break">{text}</span>
        </div>
      ))}
    </div>
  );
}
