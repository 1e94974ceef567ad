import type { JSX } from "preact";
import type { Tool } from "../../../http/api.ts";
import { Badge } from "../../parts/badge.tsx";
import { Json } from "../../parts/code.tsx";
import { Card } from "../../parts/page.tsx";
import { useSession } from "../../state/session.tsx";
import { ArgumentTable } from "./argument-table.tsx";
import { TryTool } from "./try-tool.tsx";

/** A tool's description, and a form that calls it. */
export function ToolView({ tool }: { readonly tool: Tool }): JSX.Element {
  const { session } = useSession();
  const { name, description, destructive, approval, input_schema } = tool;
  return (
    <>
      <Card title={name}>
        <div class="row">
          {destructive ? (
            <Badge tone="warn" text="destructive" />
          ) : (
            <Badge tone="plain" text="not marked destructive" />
          )}
          {approval && <Badge tone="info" text="needs approval" />}
        </div>
        {description === "" ? (
          <p class="muted">It has no description.</p>
        ) : (
          <p class="tool-description break">{description}</p>
        )}
        {approval && session.agent === null && (
          <p class="muted small">Agents need approval to call it, unless their settings name other tools.</p>
        )}
        <h3>Arguments</h3>
        <ArgumentTable schema={input_schema} />
        <details>
          <summary>Input schema as JSON</summary>
          <Json value={input_schema} label={`Input schema of ${name}`} />
        </details>
      </Card>
      <TryTool tool={tool} />
    </>
  );
}
