import type { JSX } from "preact";
import type { Connector } from "../../../http/api.ts";
import { Actor } from "../../parts/actor.tsx";
import { Facts } from "../../parts/page.tsx";
import { countText, Time } from "../../parts/text.tsx";

const KINDS: Readonly<Record<string, string>> = {
  builtin: "Built in",
  mcp: "MCP server",
  openapi: "HTTP API (OpenAPI)",
};

export function kindText(kind: string): string {
  return KINDS[kind] ?? kind;
}

export function isAllTools(scopes: readonly string[]): boolean {
  return scopes.includes("*");
}

/** Why a connector is not ready and what to do about it, or what a ready connector cannot offer. */
export function ConnectorError({ connector }: { readonly connector: Connector }): JSX.Element | null {
  const { status, error, tools } = connector;
  if (status === "ready") return error ? <div class="note connector-error break">{error}</div> : null;
  return (
    <div class={status === "disabled" ? "note connector-error" : "problem connector-error"}>
      <strong class="break">{error ?? "It is not ready."}</strong>
      <span class="small">
        {status === "disabled"
          ? "The server's configuration does not allow it. Change the configuration and restart the server, or remove the connector."
          : tools.length > 0
            ? "The tools below are from the last successful refresh. Correct the problem, then refresh."
            : "Correct the problem, then refresh."}
      </span>
    </div>
  );
}

export function ConnectorFacts({ connector }: { readonly connector: Connector }): JSX.Element {
  const { kind, authorised_by, authorised_at, scopes, tools } = connector;
  const destructive = tools.filter((tool) => tool.destructive).length;
  return (
    <Facts
      of={[
        [
          "Tools",
          <span key="tools" class="number">
            {countText(tools.length)}
            {destructive > 0 && <span class="muted">, {countText(destructive)} destructive</span>}
          </span>,
        ],
        [
          "Scopes",
          isAllTools(scopes) ? (
            "All its tools"
          ) : (
            <span key="scopes" class="row connector-chips">
              {scopes.map((scope) => (
                <span key={scope} class="chip">
                  {scope}
                </span>
              ))}
            </span>
          ),
        ],
        kind === "builtin"
          ? ["Added", "Always available"]
          : [
              "Authorised",
              <span key="by">
                <Time at={authorised_at} />{" "}
                <span class="connector-who">
                  by <Actor of={authorised_by} />
                </span>
              </span>,
            ],
      ]}
    />
  );
}
