import { type JsonObject, type JsonSchema, ToolError } from "../agents/index.ts";
import type { Via } from "../base/via.ts";
import type { KeptTool } from "./tools/kept-tool.ts";

/**
 * A tool's description of its own behaviour, as in MCP (specification 2025-11-25, `ToolAnnotations`). Hints, never
 * guarantees: they are passed on, and only `destructiveHint` has an effect here.
 */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** A tool as its connector offers it. Plain JSON. `KeptTool` is the form in which it is kept. */
export interface ToolDescription {
  /** Without the connector's name: `[a-zA-Z0-9_.-]`, at most 100 characters, unique within its connector. */
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** A JSON Schema of type object. */
  readonly inputSchema: JsonSchema;
  /** A JSON Schema of type object, for `structuredContent`. */
  readonly outputSchema?: JsonSchema;
  readonly annotations?: ToolAnnotations;
  /** Whether the tool may destroy or change something outside. Decides whether a person has to approve its calls. */
  readonly destructive: boolean;
  /** The Gatehouse instances that a call passes after this one, nearest first. */
  readonly path?: Via;
  /** Data that only its source uses to call it: the upstream's own name, or an operation's method and path. */
  readonly binding?: JsonObject;
}

/** One part of an answer, as in MCP: `type` is text, image, audio, resource or resource_link. */
export interface ContentBlock {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The answer to a call: MCP's `CallToolResult`, the common form of all connectors. */
export interface ToolAnswer {
  readonly content: readonly ContentBlock[];
  /** Plain JSON. */
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  /** Whether the tool itself reports that it failed; the content then says how. */
  readonly isError?: boolean;
}

/** The progress of a call, as in MCP's progress notifications. */
export interface ToolProgress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

export interface SourceCall {
  /** Aborts when the caller abandons the call; the upstream is notified. */
  readonly signal: AbortSignal;
  readonly callId: string;
  /** The Gatehouse instances that the call had passed before it came here. */
  readonly via?: Via;
  readonly progress?: (progress: ToolProgress) => void;
}

/** Provides the tools of one connector and makes their calls. Replaced when the connector's definition changes. */
export interface ToolSource {
  /** What the last listing left out and why, in words that may be shown. Null or undefined: nothing. */
  readonly omitted?: string | null;
  /** Lists the tools. May return the same list as before if nothing has changed. @throws ConnectorError */
  list(signal: AbortSignal): Promise<readonly KeptTool[]>;
  /** `input` is valid for the tool's schema. @throws ConnectorError */
  call(tool: KeptTool, input: JsonObject, context: SourceCall): Promise<ToolAnswer>;
  /** Closes everything that it holds open; resolves when that is done. Never throws. */
  close(): Promise<void>;
}

/**
 * - `unreachable`: no connection, or it was lost
 * - `timeout`: no answer in time
 * - `unavailable`: not tried, because of repeated failures (the message says when the next attempt is) or because a
 *   limit of in-flight requests is reached
 * - `invalid_answer`: the answer violates the protocol
 * - `too_large`: the answer exceeds a limit
 * - `nested_too_deep`: the answer's JSON is nested too deeply
 * - `refused`: the upstream refused (a status, a JSON-RPC error)
 * - `forbidden_address`: connectors may not reach the address
 * - `cancelled`: the caller abandoned the call
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
 * A connector's error, in words that may be shown to anyone: the connector's secrets are masked, and an upstream's
 * text is cut. Models and MCP clients read the message.
 */
export class ConnectorError extends ToolError {
  readonly fault: ConnectorFault;
  /**
   * What the connector's program wrote to standard error before it failed, masked. A program can write a secret in a
   * form that no mask finds, so this MUST be shown only to callers who may add such connectors.
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
