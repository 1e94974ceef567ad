import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ToolOffers } from "./offer.ts";
import type { McpSession } from "./session.ts";
import type { McpSessions } from "./sessions.ts";

/** Changes within this time cause a single notification. */
const WAIT_MS = 100;

export interface ToolChangeParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly offers: ToolOffers;
  readonly sessions: McpSessions;
}

/** Notifies clients when the tools available to their token have changed (`notifications/tools/list_changed`). */
export class ToolChanges {
  readonly #parts: ToolChangeParts;
  readonly #due = new Set<number>();
  #cancel: (() => void) | null = null;

  constructor(parts: ToolChangeParts) {
    this.#parts = parts;
  }

  /** Notes a change in a workspace. The sessions it affects are determined a little later. */
  note(workspaceId: number): void {
    this.#due.add(workspaceId);
    this.#cancel ??= this.#parts.clock.after(WAIT_MS, () => {
      this.#cancel = null;
      const due = [...this.#due];
      this.#due.clear();
      void this.#tell(due);
    });
  }

  /** Notifies a session that has just opened a stream about earlier changes. */
  async look(session: McpSession): Promise<void> {
    try {
      await this.#tellOne(session);
    } catch (error) {
      this.#parts.log.debug("an MCP client could not be notified of its tools", { error });
    }
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  async #tell(workspaces: readonly number[]): Promise<void> {
    for (const workspaceId of workspaces) {
      for (const session of this.#parts.sessions.of(workspaceId)) {
        try {
          // A session without a stream is notified when it opens one.
          if (session.streams > 0) await this.#tellOne(session);
        } catch (error) {
          this.#parts.log.debug("an MCP client could not be notified of its tools", { error });
        }
      }
    }
  }

  async #tellOne(session: McpSession): Promise<void> {
    const offer = await this.#parts.offers.of(session.caller);
    const digest = await offer.digest();
    if (session.toldTools === digest) return;
    session.toldTools = digest;
    await session.server.sendToolListChanged();
  }
}
