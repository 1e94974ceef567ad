import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { Action } from "../state/use-action.ts";
import { ProblemNote } from "./problem.tsx";

/** A dialog over the page, open for as long as it is drawn. Escape closes it, and the focus goes back where it was. */
export function Dialog({
  title,
  close,
  isWide = false,
  children,
}: {
  readonly title: string;
  readonly close: () => void;
  readonly isWide?: boolean;
  readonly children: ComponentChildren;
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
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
    <dialog
      ref={element}
      class={isWide ? "dialog-wide" : undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClose={() => {
        // A browser closes it by itself at a second Escape, even where the first one was answered with a question.
        const dialog = element.current;
        if (!dialog || dialog.open) return;
        dialog.showModal();
        close();
      }}
    >
      <div class="stack">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
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
