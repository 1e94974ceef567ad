import type { JSX } from "preact";
import { Empty, Page } from "../../parts/page.tsx";

/** Shown in place of content that the server would refuse. */
export function MayNotRead({ title }: { readonly title: string }): JSX.Element {
  return (
    <Page title={title}>
      <Empty title="Your token may not read tasks">
        It lacks the scope <code>tasks:read</code>. Sign in with one that has it, or ask the person who issued
        yours.
      </Empty>
    </Page>
  );
}
