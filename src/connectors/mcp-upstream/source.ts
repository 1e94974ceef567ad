import type { Result } from "@modelcontextprotocol/sdk/types.js";
import type { JsonObject } from "../../agents/index.ts";
import { Inflow } from "../../base/inflow.ts";
import { VIA_META } from "../../base/via.ts";
import type { McpDefinition } from "../definition/definition.ts";
import { ConnectorError, type SourceCall, type ToolAnswer, type ToolSource } from "../source.ts";
import { bindingOf, type KeptTool } from "../tools/kept-tool.ts";
import { toolAnswer } from "./answer.ts";
import { Changes } from "./changes.ts";
import { UpstreamConnection } from "./connection.ts";
import type { McpSourceParts, UpstreamParts } from "./parts.ts";
import { progressTo } from "./progress.ts";
import { listTools } from "./tools.ts";

/** For a handshake over HTTP, and for all pages of tools. */
const HANDSHAKE_MS = 10_000;
/**
 * For a program's handshake: `npx` installs it at its first start, which took 9 s on two busy cores. A program killed
 * during installation starts over the next time, or finds a partial installation and fails forever.
 */
const PROGRAM_START_MS = 60_000;
/** The total limit of a call with signs of life, as a multiple of its timeout. */
const TOTAL_TIMEOUTS = 10;
/** Maximum number of omitted tools that a warning names. */
const MOST_WARNED = 20;

/**
 * The tools of an upstream MCP server (specifications 2024-11-05 to 2025-11-25), over stdio, Streamable HTTP or the
 * older HTTP+SSE. Nothing starts before the first `list` or `call`. All calls share one connection, which is made
 * again after it was lost. `close` ends a child process with everything that it started.
 */
export function mcpSource(
  connector: { readonly name: string },
  definition: McpDefinition,
  given: McpSourceParts,
): ToolSource {
  const asking = Math.min(HANDSHAKE_MS, given.timeoutMs);
  const handshakeMs =
    given.handshakeMs ?? (definition.transport.type === "stdio" ? PROGRAM_START_MS : asking);
  const parts: UpstreamParts = {
    ...given,
    name: connector.name,
    handshakeMs,
    inflow: new Inflow(given.clock, given.workspaceId),
  };
  return new McpSource(definition, parts, asking);
}

class McpSource implements ToolSource {
  readonly #parts: UpstreamParts;
  readonly #connection: UpstreamConnection;
  readonly #changes: Changes;
  readonly #listMs: number;
  #warned = "";

  constructor(definition: McpDefinition, parts: UpstreamParts, listMs: number) {
    this.#parts = parts;
    this.#listMs = listMs;
    this.#changes = new Changes(parts.clock, parts.toolsChanged);
    this.#connection = new UpstreamConnection(definition.transport, parts, () => this.#changes.noticed());
  }

  async list(signal: AbortSignal): Promise<readonly KeptTool[]> {
    return this.#connection.use(signal, async (session) => {
      const end = this.#parts.clock.monotonic() + this.#listMs;
      const page = (cursor: string | undefined): Promise<Result> => {
        const left = Math.max(0, end - this.#parts.clock.monotonic());
        const options = { signal, silenceMs: left, totalMs: left, acts: false };
        return session.request("tools/list", cursor === undefined ? {} : { cursor }, options);
      };
      try {
        const { tools, leftOut } = await listTools(page, this.#parts);
        this.#warn(leftOut);
        return tools;
      } catch (error) {
        // Some servers have tools but do not declare the capability. From others, a refusal is expected.
        if (!session.hasTools && error instanceof ConnectorError && error.fault === "refused") return [];
        throw error;
      }
    });
  }

  async call(tool: KeptTool, input: JsonObject, context: SourceCall): Promise<ToolAnswer> {
    const { timeoutMs } = this.#parts;
    const own = bindingOf(tool)?.name;
    const via = context.via ?? [];
    const params = {
      name: typeof own === "string" ? own : tool.name,
      arguments: input,
      ...(via.length > 0 ? { _meta: { [VIA_META]: [...via, this.#parts.instance] } } : {}),
    };
    return this.#connection.use(context.signal, async (session) => {
      const result = await session.request("tools/call", params, {
        signal: context.signal,
        silenceMs: timeoutMs,
        totalMs: TOTAL_TIMEOUTS * timeoutMs,
        acts: true,
        ...(context.progress ? { progress: progressTo(context.progress, this.#parts) } : {}),
      });
      return toolAnswer(result, this.#parts);
    });
  }

  async close(): Promise<void> {
    this.#changes.end();
    await this.#connection.close();
  }

  /** Warns once about the same tools, since tools may be listed often. */
  #warn(leftOut: readonly string[]): void {
    const text = [...new Set(leftOut)].slice(0, MOST_WARNED).join("; ");
    if (text !== "" && text !== this.#warned) {
      const { log, name } = this.#parts;
      log.warn("some of a connector's tools are not offered", { connector: name, left_out: text });
    }
    this.#warned = text;
  }
}
