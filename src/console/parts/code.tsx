import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

const SHOWN_MS = 1_500;

/** Copies text and confirms it. */
export function CopyButton({
  text,
  label = "Copy",
}: {
  readonly text: string;
  readonly label?: string;
}): JSX.Element {
  const [state, setState] = useState<"ready" | "copied" | "failed">("ready");
  useEffect(() => {
    if (state === "ready") return undefined;
    const timer = setTimeout(() => setState("ready"), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [state]);
  async function copy(): Promise<void> {
    setState((await copyText(text)) ? "copied" : "failed");
  }
  const words = { ready: label, copied: "Copied", failed: "Select it and press Ctrl+C" };
  return (
    <button type="button" class="button-small" onClick={copy} aria-live="polite">
      {words[state]}
    </button>
  );
}

/** Browsers give only pages on https and localhost access to the clipboard. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Preformatted text, to be read or copied. */
export function Code({
  text,
  label,
  canCopy = true,
}: {
  readonly text: string;
  /** Label for screen readers. */
  readonly label: string;
  readonly canCopy?: boolean;
}): JSX.Element {
  return (
    <div class={canCopy ? "code code-copied" : "code"}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1). */}
      <section class="code-text" tabIndex={0} aria-label={label}>
        <pre>{text}</pre>
      </section>
      {canCopy && <CopyButton text={text} />}
    </div>
  );
}

export function Json({ value, label }: { readonly value: unknown; readonly label: string }): JSX.Element {
  return <Code text={JSON.stringify(value, null, 2) ?? "null"} label={label} />;
}
