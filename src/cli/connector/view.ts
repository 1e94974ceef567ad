import { print, printTable } from "../output.ts";
import { lineOf } from "../vault/text.ts";

/** A connector as REST returns it (contract, section 6). */
export interface ConnectorView {
  readonly name: string;
  readonly kind: string;
  readonly status: "ready" | "unreachable" | "disabled";
  readonly error?: string;
  readonly authorised_by: string;
  readonly authorised_at: string;
  readonly scopes: readonly string[];
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly destructive: boolean;
  }[];
}

const DESCRIPTION_COLUMNS = 70;

/** The state of a connector on one line: `files: ready, 14 tools`. */
export function stateOf({ name, status, error, tools }: ConnectorView): string {
  const count = tools.length === 1 ? "1 tool" : `${tools.length} tools`;
  return lineOf(`${name}: ${status}, ${count}${error === undefined ? "" : `: ${error}`}`);
}

export function printConnectors(connectors: readonly ConnectorView[]): void {
  printTable(
    ["NAME", "KIND", "STATUS", "TOOLS", "SCOPES", "AUTHORISED BY"],
    connectors.map(({ name, kind, status, tools, scopes, authorised_by }) => [
      name,
      kind,
      status,
      String(tools.length),
      scopes.join(" "),
      lineOf(authorised_by),
    ]),
  );
  const failing = connectors.filter(({ error }) => error !== undefined);
  if (failing.length > 0) print("");
  for (const { name, error = "" } of failing) print(lineOf(`${name}: ${error}`));
}

export function printTools(connectors: readonly ConnectorView[]): void {
  const tools = connectors.flatMap((connector) => connector.tools);
  printTable(
    ["TOOL", "DESTRUCTIVE", "DESCRIPTION"],
    tools.map(({ name, destructive, description }) => [
      name,
      destructive ? "yes" : "-",
      lineOf(description, DESCRIPTION_COLUMNS),
    ]),
  );
}
