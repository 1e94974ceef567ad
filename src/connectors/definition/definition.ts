import type { JsonObject } from "../../agents/index.ts";

/** A program on this machine that speaks MCP over its standard input and output. */
export interface StdioTransport {
  readonly type: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  /** The child's whole environment. If `command` is found on PATH, PATH and HOME are added. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Who added it, which decides whether it may run if `connectors.stdio` is `operator`. Undefined in older
   * definitions.
   */
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
  /** The document's http or https URL, or its text (JSON or YAML). Earlier versions stored some as objects. */
  readonly spec: string | JsonObject;
  /** Null for the document's first server. */
  readonly baseUrl: string | null;
  readonly auth: OpenApiAuth | null;
  /**
   * If `baseUrl` is null, the only origin that `auth` is sent to: that of the document's first server when it was
   * first read. Undefined until then, and never changed afterwards, so that the document's server cannot redirect the
   * secret.
   */
  readonly authOrigin?: string;
}

/** How to reach a connector's upstream. Always encrypted as a whole, and never shown. */
export type ConnectorDefinition = McpDefinition | OpenApiDefinition;
