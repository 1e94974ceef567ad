import type { JSX } from "preact";
import { Empty } from "./page.tsx";

/**
 * Shown in place of content that needs a scope the token lacks. `what` completes "You may not …", as in "read
 * agents".
 */
export function Lacking({ scope, what }: { readonly scope: string; readonly what: string }): JSX.Element {
  return (
    <Empty title={`You may not ${what}`}>
      Your token lacks the scope <code>{scope}</code>. Sign in with one that has it, or ask the person who
      issued yours.
    </Empty>
  );
}
