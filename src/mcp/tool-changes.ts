import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Offers } from "./offer.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";

/** Changes that come together are told together. */
const WAIT_MS = 100;

export interface ToolChangeParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly offers: Offers;
  readonly sessions: Sessions;
}

/** Tells clients when what their token may reach is not what they were told (`notifications/tools/list_changed`). */
export class ToolChanges {
  readonly #parts: ToolChangeParts;
  readonly #due = new Set<number>();
  #cancel: (() => void) | null = null;

  constructor(parts: ToolChangeParts) {
    this.#parts = parts;
  }

  /** Something has changed in a workspace: who is told is found out a little later. */
  note(workspaceId: number): void {
    this.#due.add(workspaceId);
    this.#cancel ??= this.#parts.clock.after(WAIT_MS, () => {
      this.#cancel = null;
      const due = [...this.#due];
      this.#due.clear();
      void this.#tell(due);
    });
  }

  /** A session has begun to listen: what changed before is told now. */
  async look(session: Session): Promise<void> {
    try {
      await this.#tellOne(session);
    } catch (error) {
      this.#parts.log.debug("an MCP client cannot be told of its tools", { error });
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
          // One that listens to nothing is told when it does.
          if (session.streams > 0) await this.#tellOne(session);
        } catch (error) {
          this.#parts.log.debug("an MCP client cannot be told of its tools", { error });
        }
      }
    }
  }

  async #tellOne(session: Session): Promise<void> {
    const { digest } = await this.#parts.offers.of(session.caller);
    if (session.toldTools === digest) return;
    session.toldTools = digest;
    await session.server.sendToolListChanged();
  }
}
