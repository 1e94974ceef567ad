import type { Agent } from "./agents.ts";
import { bytesOfList } from "./list-memory.ts";

/**
 * Maximum number of cached agents, each under two keys. A read right after a write costs the reading connection its
 * page cache, so looking up an agent by query took as long as writing its ledger entry (each a tenth of a GET's time,
 * profiled).
 */
const MOST_KEYS = 10_000;
/**
 * Bytes of memory for the agents in the cache: see `list-memory.ts`. One agent may have instructions of 100,000
 * characters, and four lists of 200 patterns with 200 characters each.
 */
const MOST_BYTES = 32 * 1024 * 1024;
/** Bytes of an agent without its texts. */
const AGENT = 1_024;

/**
 * An agent as last read. Outdated after a change to any agent of its workspace; then it is used only if the store cannot
 * be read.
 */
export interface CachedAgent {
  readonly agent: Agent;
  readonly generation: number;
}

interface Entry {
  readonly keys: readonly string[];
  readonly cached: CachedAgent;
  readonly bytes: number;
}

/** Cached agents. Emptied when full. */
export class AgentCache {
  readonly #most: number;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(mostBytes = MOST_BYTES) {
    this.#most = mostBytes;
  }

  get(key: string): CachedAgent | undefined {
    return this.#entries.get(key)?.cached;
  }

  /** Replaces all agents with one of these keys. */
  add(keys: readonly string[], cached: CachedAgent): void {
    for (const key of keys) this.#remove(key);
    const bytes = bytesOf(cached.agent);
    if (this.#entries.size >= MOST_KEYS || this.#bytes + bytes > this.#most) {
      this.#entries.clear();
      this.#bytes = 0;
    }
    this.#bytes += bytes;
    for (const key of keys) this.#entries.set(key, { keys, cached, bytes });
  }

  #remove(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#bytes -= entry.bytes;
    for (const each of entry.keys) this.#entries.delete(each);
  }
}

function bytesOf({ owner, description, instructions, ...agent }: Agent): number {
  const { allow, deny } = agent.tierPolicy.models;
  const texts = owner.length + (description?.length ?? 0) + (instructions?.length ?? 0);
  const lists = [agent.memoryScope, agent.tools, agent.approvals ?? [], allow, deny];
  // A character outside of Latin-1 takes two bytes, and so do all others of its text.
  return AGENT + 2 * texts + lists.reduce((sum, list) => sum + bytesOfList(list), 0);
}
