import type { JSX } from "preact";
import { useRef } from "preact/hooks";

/** A button that opens a file dialog. */
export function FileButton({
  label,
  accepted,
  isMain = false,
  isSmall = false,
  take,
}: {
  readonly label: string;
  /** Extensions and media types that the dialog offers. Default: all. */
  readonly accepted?: string;
  readonly isMain?: boolean;
  readonly isSmall?: boolean;
  readonly take: (files: readonly File[]) => void;
}): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        class={isMain ? "button-main" : isSmall ? "button-small" : undefined}
        onClick={() => input.current?.click()}
      >
        {label}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={label}
        accept={accepted}
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
