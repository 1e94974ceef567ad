import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { ACCEPTED } from "./file-type.ts";

/** A button that opens a file dialog. */
export function FileButton({
  label,
  isMain = false,
  take,
}: {
  readonly label: string;
  readonly isMain?: boolean;
  readonly take: (files: readonly File[]) => void;
}): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class={isMain ? "button-main" : undefined} onClick={() => input.current?.click()}>
        {label}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={label}
        accept={ACCEPTED}
        onChange={(event) => {
          const chosen = [...(event.currentTarget.files ?? [])];
          // Lets the same files be chosen again.
          event.currentTarget.value = "";
          if (chosen.length > 0) take(chosen);
        }}
      />
    </>
  );
}
