import { bytesOfTools, type KeptTool } from "./kept-tool.ts";

const MIB = 1024 * 1024;

/** A limit on the number of tools, and on the bytes that they take in memory. */
export interface ToolLimit {
  readonly tools: number;
  readonly bytes: number;
}

/** All tools are kept in memory, so calls and listings ask neither store nor upstream. */
export interface ToolLimits {
  readonly connector: ToolLimit;
  readonly workspace: ToolLimit;
  readonly node: ToolLimit;
}

export const TOOL_LIMITS: ToolLimits = {
  connector: { tools: 2_000, bytes: 8 * MIB },
  workspace: { tools: 10_000, bytes: 32 * MIB },
  node: { tools: 100_000, bytes: 256 * MIB },
};

const NOTHING: ToolLimit = { tools: 0, bytes: 0 };

interface Holding extends ToolLimit {
  readonly workspaceId: number;
}

/**
 * Allocates the memory for connectors' tools. One connector, one workspace and all of them together each have a
 * limit.
 */
export class ToolMemory {
  readonly #limits: ToolLimits;
  readonly #held = new Map<number, Holding>();
  readonly #workspaces = new Map<number, ToolLimit>();
  #all: ToolLimit = NOTHING;

  constructor(limits: ToolLimits = TOOL_LIMITS) {
    this.#limits = limits;
  }

  /**
   * Whether these tools would fit if they replaced the connector's current ones.
   * @param id the connector's id; null for one that does not exist yet
   * @returns why not, as the end of a sentence; undefined if they would
   */
  refusal(workspaceId: number, id: number | null, tools: readonly KeptTool[]): string | undefined {
    return this.#refusal(workspaceId, id, { tools: tools.length, bytes: bytesOfTools(tools) });
  }

  /**
   * Reserves memory for these tools, releasing what the connector's previous ones held.
   * @returns as `refusal`; if it is refused, nothing has changed
   */
  hold(workspaceId: number, id: number, tools: readonly KeptTool[]): string | undefined {
    const wanted = { tools: tools.length, bytes: bytesOfTools(tools) };
    const refusal = this.#refusal(workspaceId, id, wanted);
    if (refusal !== undefined) return refusal;
    this.release(id);
    this.#held.set(id, { workspaceId, ...wanted });
    this.#workspaces.set(workspaceId, plus(this.#workspaces.get(workspaceId) ?? NOTHING, wanted));
    this.#all = plus(this.#all, wanted);
    return undefined;
  }

  release(id: number): void {
    const held = this.#held.get(id);
    if (!held) return;
    this.#held.delete(id);
    this.#workspaces.set(held.workspaceId, minus(this.#workspaces.get(held.workspaceId) ?? NOTHING, held));
    this.#all = minus(this.#all, held);
  }

  #refusal(workspaceId: number, id: number | null, wanted: ToolLimit): string | undefined {
    const { connector, workspace, node } = this.#limits;
    const before = (id === null ? undefined : this.#held.get(id)) ?? NOTHING;
    // A smaller amount is never refused.
    if (wanted.tools <= before.tools && wanted.bytes <= before.bytes) return undefined;
    if (exceeds(wanted, connector)) return `${told(wanted)}, but one connector may have ${told(connector)}`;
    const own = minus(this.#workspaces.get(workspaceId) ?? NOTHING, before);
    if (exceeds(plus(own, wanted), workspace)) {
      return `${told(wanted)}. The workspace's other connectors have ${told(own)}; together they may have ${told(workspace)}`;
    }
    if (exceeds(plus(minus(this.#all, before), wanted), node)) {
      return `${told(wanted)}, for which this server has no room. All connectors of the server may have ${told(node)}`;
    }
    return undefined;
  }
}

function plus(one: ToolLimit, other: ToolLimit): ToolLimit {
  return { tools: one.tools + other.tools, bytes: one.bytes + other.bytes };
}

function minus(one: ToolLimit, other: ToolLimit): ToolLimit {
  return { tools: one.tools - other.tools, bytes: one.bytes - other.bytes };
}

function exceeds(wanted: ToolLimit, limit: ToolLimit): boolean {
  return wanted.tools > limit.tools || wanted.bytes > limit.bytes;
}

function told({ tools, bytes }: ToolLimit): string {
  return `${tools} tools (${(bytes / MIB).toFixed(1)} MiB)`;
}
