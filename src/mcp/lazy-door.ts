import type { McpDoor, McpRequest } from "./door.ts";
import type { McpParts } from "./parts.ts";
import type { McpAnswer } from "./reply.ts";

/**
 * The MCP endpoint. Loaded together with the SDK when the first client connects, so that startup does not wait for
 * it.
 */
export class LazyMcpDoor {
  readonly #load: () => Promise<McpParts>;
  #door: McpDoor | null = null;
  #opening: Promise<McpDoor> | null = null;

  /** `load` returns the endpoint's dependencies. */
  constructor(load: () => Promise<McpParts>) {
    this.#load = load;
  }

  get openSessions(): number {
    return this.#door?.openSessions ?? 0;
  }

  handle(asked: McpRequest): Promise<McpAnswer> {
    if (this.#door) return this.#door.handle(asked);
    // After a failure, the next request tries to load it again.
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening.then((door) => door.handle(asked));
  }

  /** Ends all sessions. */
  async stop(): Promise<void> {
    const door = await this.#opening?.catch(() => null);
    await door?.stop();
  }

  async #open(): Promise<McpDoor> {
    const { McpDoor: Door } = await import("./door.ts");
    this.#door = new Door(await this.#load());
    return this.#door;
  }
}
