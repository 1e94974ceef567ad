import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Moves the focus to the first invalid field of the form with this ref. */
export function useFirstFault(errors: ReadonlyMap<string, string>): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (errors.size === 0) return;
    const field = form.current?.querySelector("[aria-invalid='true']");
    if (field instanceof HTMLElement) field.focus();
  }, [errors]);
  return form;
}
