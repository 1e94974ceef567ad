import type { KeptTool } from "./kept-tool.ts";

export type ConnectorStatus = "ready" | "unreachable" | "disabled";

/** What a connector's name looks like (contract, section 6). No two underscores meet, so that `<connector>__<tool>` has one reading. */
export const CONNECTOR_NAME = "^[a-z][a-z0-9]*(_[a-z0-9]+)*$";
export const CONNECTOR_NAME_LENGTH = 24;
const NAME = new RegExp(CONNECTOR_NAME);

export function isConnectorName(text: string): boolean {
  return text.length <= CONNECTOR_NAME_LENGTH && NAME.test(text);
}

/** A source of tools, and the record of who let it in. */
export interface Connector {
  readonly name: string;
  readonly kind: "builtin" | "mcp" | "openapi";
  readonly status: ConnectorStatus;
  /** Why it is not `ready`. */
  readonly error: string | null;
  /** What its program wrote on standard error before it failed: for callers who may add such connectors. Not stored. */
  readonly output?: string | undefined;
  /** Globs over its own tools' names: a tool outside of them is neither listed nor callable. */
  readonly scopes: readonly string[];
  readonly authorisedBy: string;
  readonly authorisedAt: number;
}

/** One that is kept in the store. */
export interface KnownConnector extends Connector {
  readonly id: number;
  readonly workspaceId: number;
  readonly kind: "mcp" | "openapi";
}

/** As the store keeps it. */
export interface StoredConnector extends KnownConnector {
  /** What it offered when it was asked last. */
  readonly tools: readonly KeptTool[];
  /** The definition, encrypted. */
  readonly sealed: Uint8Array;
}

/** A connector that is a part of the program. */
export function builtinConnector(name: string, createdAt: number): Connector {
  return {
    name,
    kind: "builtin",
    status: "ready",
    error: null,
    scopes: ["*"],
    authorisedBy: "system",
    authorisedAt: createdAt,
  };
}
