import type { JSX } from "preact";
import { Empty } from "./page.tsx";

/** Stands in place of what the server would refuse for want of a scope. `what`: as in "You may not read agents". */
export function Lacking({ scope, what }: { readonly scope: string; readonly what: string }): JSX.Element {
  return (
    <Empty title={`You may not ${what}`}>
      Your token lacks the scope <code>{scope}</code>. Sign in with one that has it, or ask who issued yours.
    </Empty>
  );
}
