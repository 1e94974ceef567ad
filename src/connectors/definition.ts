import type { JsonObject } from "../agents/index.ts";

/** A program on this machine that speaks MCP over its standard input and output. */
export interface StdioTransport {
  readonly type: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  /** The child's whole environment; where `command` is found on PATH, PATH and HOME are added. */
  readonly env: Readonly<Record<string, string>>;
  /** Who had it added, which decides where `connectors.stdio` is `operator`. Undefined in definitions that were stored before it was recorded. */
  readonly addedBy?: "operator" | "workspace";
}

/** A server that speaks MCP over HTTP: `http` is Streamable HTTP, `sse` the older HTTP+SSE. */
export interface HttpTransport {
  readonly type: "http" | "sse";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface McpDefinition {
  readonly kind: "mcp";
  readonly transport: StdioTransport | HttpTransport;
}

export type OpenApiAuth =
  | { readonly type: "bearer"; readonly token: string }
  | { readonly type: "basic"; readonly username: string; readonly password: string }
  | { readonly type: "header" | "query"; readonly name: string; readonly value: string };

export interface OpenApiDefinition {
  readonly kind: "openapi";
  /** Where the document is (an http or https URL), or its text (JSON or YAML). Earlier versions stored some as objects. */
  readonly spec: string | JsonObject;
  /** Null: the document's first server. */
  readonly baseUrl: string | null;
  readonly auth: OpenApiAuth | null;
  /**
   * Where `baseUrl` is null, the one origin that `auth` goes to: that of the document's first server when it was read first.
   * Undefined until then, and never changed after that, so that whoever serves the document cannot have it sent elsewhere.
   */
  readonly authOrigin?: string;
}

/** How a connector reaches what it connects. Kept encrypted as a whole, and never shown. */
export type ConnectorDefinition = McpDefinition | OpenApiDefinition;
