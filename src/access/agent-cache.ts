import type { Agent } from "./agents.ts";

/**
 * Maximum number of cached agents, each under two keys. A read right after a write costs the reading connection its
 * page cache, so looking up an agent by query took as long as writing its ledger entry (each a tenth of a GET's time,
 * profiled).
 */
const MOST_KEYS = 10_000;
/** Maximum number of characters of instructions in the cache. One agent may have 100,000. */
const MOST_CHARACTERS = 32 * 1024 * 1024;

/** An agent as last read. Outdated after a change to any agent of its workspace; then it is used only if the store cannot be read. */
export interface CachedAgent {
  readonly agent: Agent;
  readonly generation: number;
}

/** Cached agents. Emptied when full. */
export class AgentCache {
  readonly #most: number;
  readonly #agents = new Map<string, CachedAgent>();
  #characters = 0;

  constructor(mostCharacters = MOST_CHARACTERS) {
    this.#most = mostCharacters;
  }

  get(key: string): CachedAgent | undefined {
    return this.#agents.get(key);
  }

  add(keys: readonly string[], cached: CachedAgent): void {
    const length = cached.agent.instructions?.length ?? 0;
    if (this.#agents.size >= MOST_KEYS || this.#characters + length > this.#most) {
      this.#agents.clear();
      this.#characters = 0;
    }
    this.#characters += length;
    for (const key of keys) this.#agents.set(key, cached);
  }
}
