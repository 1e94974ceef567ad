import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { ACCEPTED } from "./file-type.ts";

/** A button that lets files be chosen. */
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
          // The same files can be chosen again.
          event.currentTarget.value = "";
          if (chosen.length > 0) take(chosen);
        }}
      />
    </>
  );
}
