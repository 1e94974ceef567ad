import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { Connector, Tool } from "../../../http/api.ts";
import { Badge } from "../../parts/badge.tsx";
import { TextField } from "../../parts/field.tsx";
import { Empty } from "../../parts/page.tsx";
import { isAllTools } from "./connector-facts.tsx";
import { ToolView } from "./tool-view.tsx";

/** With at least this many tools, the list has a search field. */
const MANY = 12;

/** A connector's tools with one of them open: next to the list on a wide screen, in its place on a narrow one. */
export function Tools({ connector }: { readonly connector: Connector }): JSX.Element {
  const { query } = useLocation();
  const { name, tools, scopes } = connector;
  const [find, setFind] = useState("");
  if (tools.length === 0) return <NoTools connector={connector} />;
  const chosen = tools.find((tool) => ownName(tool) === query.tool);
  const open = chosen ?? tools[0];
  const wanted = find.trim().toLowerCase();
  const shown = tools.filter((tool) => `${tool.name} ${tool.description}`.toLowerCase().includes(wanted));
  return (
    <div class="tools" data-chosen={chosen !== undefined}>
      <section class="tools-list stack-small" aria-label="Tools">
        {tools.length >= MANY && (
          <TextField label="Find a tool" type="search" value={find} change={setFind} />
        )}
        <ul>
          {shown.map((tool) => (
            <li key={tool.name}>
              <a
                href={`/console/connectors/${encodeURIComponent(name)}?tool=${encodeURIComponent(ownName(tool))}`}
                aria-current={tool === open ? "true" : undefined}
              >
                <span class="row-between">
                  <strong class="break">{ownName(tool)}</strong>
                  {tool.destructive && <Badge tone="warn" text="destructive" />}
                </span>
                {tool.description !== "" && (
                  <span class="muted small cut">{firstLine(tool.description)}</span>
                )}
              </a>
            </li>
          ))}
        </ul>
        {shown.length === 0 && <p class="muted">No tool matches.</p>}
        {!isAllTools(scopes) && (
          <p class="muted small">Other tools are outside its scopes, and can neither be seen nor called.</p>
        )}
      </section>
      <div class="tools-open stack">
        {chosen && (
          <a class="tools-back" href={`/console/connectors/${encodeURIComponent(name)}`}>
            All tools of {name}
          </a>
        )}
        {open && <ToolView key={open.name} tool={open} />}
      </div>
    </div>
  );
}

function NoTools({ connector: { status, scopes } }: { readonly connector: Connector }): JSX.Element {
  return (
    <Empty title="No tools">
      {status !== "ready"
        ? "Its tools are not known yet. Refresh it once it can be reached."
        : isAllTools(scopes)
          ? "It offers no tools that you may use."
          : "None of its tools match its scopes. To change the scopes, remove it and add it again."}
    </Empty>
  );
}

/** The tool's name without its connector. */
function ownName({ name }: Pick<Tool, "name">): string {
  return name.slice(name.indexOf(".") + 1);
}

function firstLine(text: string): string {
  return text.trim().split("\n", 1)[0] ?? "";
}
