import { type JsonObject, type JsonSchema, ToolError } from "../agents/index.ts";
import type { Via } from "../base/via.ts";
import type { KeptTool } from "./kept-tool.ts";

/**
 * What a tool says about itself, as MCP has it (specification 2025-11-25, `ToolAnnotations`). Hints, never guarantees:
 * they are passed on, and only `destructiveHint` moves anything here.
 */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** A tool as its connector offers it. Plain JSON. `KeptTool` is the form in which it is kept. */
export interface OfferedTool {
  /** Without the connector's name: `[a-zA-Z0-9_.-]`, 100 characters at most, unlike any other of its connector. */
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** A JSON Schema of type object. */
  readonly inputSchema: JsonSchema;
  /** A JSON Schema of type object, of `structuredContent`. */
  readonly outputSchema?: JsonSchema;
  readonly annotations?: ToolAnnotations;
  /** It may destroy or change something outside; decides on whether a person has to approve. */
  readonly destructive: boolean;
  /** The Gatehouses that a call of it passes behind this one, nearest first. */
  readonly path?: Via;
  /** What its source needs to call it, and nobody else reads: the upstream's own name, an operation's method and path. */
  readonly binding?: JsonObject;
}

/** One part of an answer, as MCP has it: `type` is text, image, audio, resource or resource_link. */
export interface ContentBlock {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** What a call answered: MCP's `CallToolResult`, the common form of all connectors. */
export interface ToolAnswer {
  readonly content: readonly ContentBlock[];
  /** Plain JSON. */
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  /** The tool itself says that it failed; the content says how. */
  readonly isError?: boolean;
}

/** How far a call is, as MCP's progress notifications say it. */
export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

export interface SourceCall {
  /** Aborts when the caller gives up: the upstream is told. */
  readonly signal: AbortSignal;
  readonly callId: string;
  /** The Gatehouses that the call had passed before it came here. */
  readonly via?: Via;
  readonly progress?: (progress: Progress) => void;
}

/** Where the tools of one connector come from and where their calls go. Made anew when its definition changes. */
export interface ToolSource {
  /** Asks for the tools. May return the same list as the last time if nothing has changed. @throws ConnectorError */
  list(signal: AbortSignal): Promise<readonly KeptTool[]>;
  /** `input` fits the tool's schema. @throws ConnectorError */
  call(tool: KeptTool, input: JsonObject, context: SourceCall): Promise<ToolAnswer>;
  /** Ends what it holds open; resolves when nothing is left. Never throws. */
  close(): Promise<void>;
}

/**
 * - `unreachable`: no connection, or it was lost
 * - `timeout`: no answer in time
 * - `unavailable`: not tried, since it failed again and again; the message says when it will be
 * - `invalid_answer`: what came is not what the protocol says
 * - `too_large`: more came than is taken
 * - `nested_too_deep`: JSON came that is nested more deeply than is taken
 * - `refused`: the upstream said no (a status, a JSON-RPC error)
 * - `forbidden_address`: the address may not be reached from here
 * - `cancelled`: the caller gave up
 */
export type ConnectorFault =
  | "unreachable"
  | "timeout"
  | "unavailable"
  | "invalid_answer"
  | "too_large"
  | "nested_too_deep"
  | "refused"
  | "forbidden_address"
  | "cancelled";

/**
 * What went wrong with a connector, in words that may be shown to anybody: the connector's secrets are masked, and what
 * an upstream wrote is cut. The model and MCP clients read the message.
 */
export class ConnectorError extends ToolError {
  readonly fault: ConnectorFault;
  /**
   * What the connector's program wrote on its standard error before it failed, masked. A program can spell a secret in a way that
   * no mask finds: MUST be shown only to callers who may add such connectors.
   */
  readonly output: string | undefined;

  constructor(
    fault: ConnectorFault,
    message: string,
    options?: { readonly cause?: unknown; readonly output?: string | undefined },
  ) {
    super(message, options);
    this.fault = fault;
    this.output = options?.output;
  }
}
