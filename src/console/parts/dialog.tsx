import { type ComponentChildren, createContext, type JSX } from "preact";
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks";
import type { Action } from "../state/use-action.ts";
import { ProblemNote } from "./problem.tsx";

/** Closes the dialog that stands around; it may ask first. */
const Leave = createContext<() => void>(() => {
  throw new Error("a CloseButton stands outside of a dialog");
});

/**
 * A dialog over the page, open for as long as it is drawn. Escape closes it, and the focus goes back where it was. With
 * `isDirty` it asks before Escape or a `CloseButton` throws away what was typed.
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
          // A file field tells of its own cancelled choice by an event of the same name, which rises to here.
          if (event.target !== event.currentTarget) return;
          event.preventDefault();
          leave();
        }}
        onClose={() => {
          // A browser closes it by itself at a second Escape, even where the first one was answered with a question.
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

/** Closes the dialog in which it stands, as Escape does. */
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
    <Dialog title="Throw away what you typed?" close={keep}>
      <p>It is not saved, and would be lost.</p>
      <div class="dialog-end">
        <button type="button" class="button-main" onClick={keep}>
          Keep editing
        </button>
        <button type="button" class="button-bad" onClick={close}>
          Throw it away
        </button>
      </div>
    </Dialog>
  );
}

/** Asks before something is done that cannot simply be undone. */
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
  /** What the button says that does it. */
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
          Keep as it is
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
