import type { JSX } from "preact";
import type { Connector } from "../../../http/api.ts";
import { Badge } from "../../parts/badge.tsx";
import { plural } from "../../parts/text.tsx";
import { accessTo, type ToolAccess, type ToolPolicy, unmatched } from "./tool-access.ts";

/** The workspace's tools: which of them a policy allows, and which need approval. */
export function ToolList({
  connectors,
  policy,
}: {
  readonly connectors: readonly Connector[];
  readonly policy: ToolPolicy;
}): JSX.Element {
  const all = accessTo(
    connectors.flatMap(({ tools }) => tools),
    policy,
  );
  const names = all.map(({ name }) => name);
  const allowed = all.filter(({ isAllowed }) => isAllowed);
  const others = all.filter(({ isAllowed }) => !isAllowed);
  const asking = allowed.filter(({ needsApproval }) => needsApproval);
  const idle = [...new Set([...unmatched(policy.tools, names), ...unmatched(policy.approvals ?? [], names)])];
  return (
    <div class="stack-small">
      <p role="status">
        <strong>
          {allowed.length} of {plural(all.length, "tool")} allowed
        </strong>
        , {asking.length === 0 ? "none needs" : `${asking.length} ${asking.length === 1 ? "needs" : "need"}`}{" "}
        approval.
      </p>
      {idle.length > 0 && (
        <p class="warning small break">
          No tool of the workspace matches <span class="mono">{idle.join(", ")}</span>
        </p>
      )}
      {allowed.length > 0 && <ToolRows tools={allowed} label="Tools that are allowed" />}
      {others.length > 0 && (
        <details>
          <summary>{plural(others.length, "tool")} not allowed</summary>
          <ToolRows tools={others} label="Tools that are not allowed" />
        </details>
      )}
    </div>
  );
}

function ToolRows({
  tools,
  label,
}: {
  readonly tools: readonly ToolAccess[];
  readonly label: string;
}): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1).
    <section class="tool-rows" tabIndex={0} aria-label={label}>
      <ul>
        {tools.map((tool) => (
          <li key={tool.name}>
            <span class={tool.isAllowed ? "mono break" : "mono break muted"}>{tool.name}</span>
            <Mark tool={tool} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Mark({ tool }: { readonly tool: ToolAccess }): JSX.Element | null {
  if (!tool.isAllowed) return tool.isDestructive ? <Badge tone="plain" text="destructive" /> : null;
  if (tool.needsApproval) return <Badge tone="warn" text="needs approval" />;
  return tool.isDestructive ? <Badge tone="bad" text="destructive, no approval" /> : null;
}
