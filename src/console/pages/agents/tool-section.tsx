import type { JSX } from "preact";
import { ProblemNote } from "../../parts/problem.tsx";
import { useSession } from "../../state/session.tsx";
import type { ToolPolicy } from "./tool-access.ts";
import { ToolList } from "./tool-list.tsx";
import { useConnectors } from "./use-whole.ts";

/** The list of tools for readers who may see connectors, or the reason why it is missing. */
export function ToolSection({ policy }: { readonly policy: ToolPolicy }): JSX.Element {
  const { session, can } = useSession();
  const { items, problem, isLoading, reload } = useConnectors();
  if (!can("connectors:read")) {
    return (
      <p class="muted">
        To see which tools these patterns match, you need the scope <code>connectors:read</code>.
      </p>
    );
  }
  return (
    <div class="stack-small">
      <ProblemNote problem={problem} retry={reload} />
      {items.length > 0 && <ToolList connectors={items} policy={policy} />}
      {items.length === 0 && isLoading && <p class="muted">Loading …</p>}
      {session.agent !== null && (
        <p class="muted small">
          Only tools that {session.agent} may use, because you are signed in as that agent.
        </p>
      )}
    </div>
  );
}
