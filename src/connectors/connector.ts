import type { KeptTool } from "./tools/kept-tool.ts";

export type ConnectorStatus = "ready" | "unreachable" | "disabled";

/**
 * The pattern of a connector's name (contract, section 6). It has no double underscore, so `<connector>__<tool>` is
 * unambiguous.
 */
export const CONNECTOR_NAME = "^[a-z][a-z0-9]*(_[a-z0-9]+)*$";
export const CONNECTOR_NAME_LENGTH = 24;
const NAME = new RegExp(CONNECTOR_NAME);

export function isConnectorName(text: string): boolean {
  return text.length <= CONNECTOR_NAME_LENGTH && NAME.test(text);
}

/** A source of tools, and the record of who authorised it. */
export interface Connector {
  readonly name: string;
  readonly kind: "builtin" | "mcp" | "openapi";
  readonly status: ConnectorStatus;
  /** Why the connector is not `ready`; if it is, what it cannot offer as tools and why. */
  readonly error: string | null;
  /**
   * What its program wrote to standard error before it failed, for callers who may add such connectors. Not stored.
   */
  readonly output?: string | undefined;
  /** Globs over its own tools' names: a tool that matches none is neither listed nor callable. */
  readonly scopes: readonly string[];
  readonly authorisedBy: string;
  readonly authorisedAt: number;
}

/** A connector that is in the store. */
export interface PersistedConnector extends Connector {
  readonly id: number;
  readonly workspaceId: number;
  readonly kind: "mcp" | "openapi";
}

/** A connector with everything the store keeps about it. */
export interface StoredConnector extends PersistedConnector {
  /** The tools from the last listing. */
  readonly tools: readonly KeptTool[];
  /** The encrypted definition. */
  readonly sealed: Uint8Array;
}

/** A connector that is part of the program. */
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
