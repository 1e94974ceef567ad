import { type ComponentChildren, createContext, type JSX } from "preact";
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks";
import type { Action } from "../state/use-action.ts";
import { ProblemNote } from "./problem.tsx";

/** Closes the enclosing dialog, which may ask first. */
const Leave = createContext<() => void>(() => {
  throw new Error("a CloseButton must be inside a dialog");
});

/**
 * A modal dialog, open while it is rendered. Escape closes it and restores the focus. With `isDirty`, Escape and
 * `CloseButton` ask before they discard what was typed.
 */
export function Dialog({
  title,
  close,
  isWide = false,
  isDirty = false,
  children,
}: {
  readonly title: string;
  readonly close: () => void;
  readonly isWide?: boolean;
  readonly isDirty?: boolean;
  readonly children: ComponentChildren;
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  const [isAsking, setAsking] = useState(false);
  const leave = () => (isDirty ? setAsking(true) : close());
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <>
      <dialog
        ref={element}
        class={isWide ? "dialog-wide" : undefined}
        aria-labelledby={id}
        onCancel={(event) => {
          // A file input's cancelled choice bubbles up as an event of the same name.
          if (event.target !== event.currentTarget) return;
          event.preventDefault();
          leave();
        }}
        onClose={() => {
          // A browser closes the dialog on the second Escape, even if the first one was cancelled to ask.
          const dialog = element.current;
          if (!dialog || dialog.open) return;
          dialog.showModal();
          leave();
        }}
      >
        <div class="stack">
          <h2 id={id}>{title}</h2>
          <Leave.Provider value={leave}>{children}</Leave.Provider>
        </div>
      </dialog>
      {isAsking && <ThrowAway close={close} keep={() => setAsking(false)} />}
    </>
  );
}

/** Closes the enclosing dialog, as Escape does. */
export function CloseButton({ children }: { readonly children: ComponentChildren }): JSX.Element {
  const leave = useContext(Leave);
  return (
    <button type="button" onClick={leave}>
      {children}
    </button>
  );
}

function ThrowAway({ close, keep }: { readonly close: () => void; readonly keep: () => void }): JSX.Element {
  return (
    <Dialog title="Discard your input?" close={keep}>
      <p>It has not been saved and would be lost.</p>
      <div class="dialog-end">
        <button type="button" class="button-main" onClick={keep}>
          Keep editing
        </button>
        <button type="button" class="button-bad" onClick={close}>
          Discard
        </button>
      </div>
    </Dialog>
  );
}

/** Asks before an action that cannot easily be undone. */
export function Confirm({
  title,
  confirm,
  isBad = true,
  action,
  close,
  work,
  children,
}: {
  readonly title: string;
  /** Label of the confirming button. */
  readonly confirm: string;
  readonly isBad?: boolean;
  readonly action: Action;
  readonly close: () => void;
  readonly work: () => Promise<unknown>;
  readonly children: ComponentChildren;
}): JSX.Element {
  async function doIt(): Promise<void> {
    const done = await action.run(async () => {
      await work();
      return true;
    });
    if (done) close();
  }
  return (
    <Dialog title={title} close={close}>
      <div class="stack-small">{children}</div>
      <ProblemNote problem={action.problem} />
      <div class="dialog-end">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button
          type="button"
          class={isBad ? "button-bad" : "button-main"}
          disabled={action.isBusy}
          onClick={() => void doIt()}
        >
          {confirm}
        </button>
      </div>
    </Dialog>
  );
}
