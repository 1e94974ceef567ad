import type { Caller } from "../../access/caller.ts";
import type { Grant } from "../../access/grant.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Signal } from "../../base/signal.ts";
import type { Gate } from "../../gate/gate.ts";
import type { EventReader } from "../../tasks/events/hub.ts";

export interface OpenCallerParts {
  readonly gate: Pick<Gate, "rightsEnd">;
  readonly tokens: { readonly changed: Signal<void> };
  readonly sessions: { readonly changed: Signal<void> };
  readonly clock: Clock;
  readonly log: Log;
}

/** The longest timer. Tokens expire by the wall clock, which may be changed while a timer runs. */
const LONGEST_WAIT_MS = 3_600_000;

/** All streams opened with one secret or session. */
interface CallerStreams {
  readonly caller: Caller;
  /** Each function stops reading one stream. */
  readonly streams: Set<() => void>;
  /** When the rights end, in milliseconds since the Unix epoch, as of the last check. */
  until: number;
  /** Whether the rights may have changed since the last check. */
  isStale: boolean;
  looking: Promise<void> | null;
  cancelTimer: () => void;
}

/**
 * Tracks whether callers with open streams are still authorised. They are checked when a stream begins and when a
 * token or session changes, once for all streams of one secret or session. While nothing changes, each has only a
 * timer.
 */
export class OpenCallers {
  readonly #parts: OpenCallerParts;
  readonly #standings = new Map<Grant | undefined, CallerStreams>();
  #isRoundDue = false;

  constructor(parts: OpenCallerParts) {
    this.#parts = parts;
    parts.tokens.changed.listen(() => this.#changed());
    parts.sessions.changed.listen(() => this.#changed());
  }

  /** Number of secrets and sessions with open streams. */
  get size(): number {
    return this.#standings.size;
  }

  /**
   * Wraps a reader so that it ends when the caller who opened it loses its rights. It MUST be read or closed. If the rights cannot
   * be checked, reading also ends; the client may reconnect and is then authenticated again.
   */
  guard(reader: EventReader, caller: Caller): EventReader {
    let isClosed = false;
    const standing = this.#enter(caller);
    const close = (): void => {
      if (isClosed) return;
      isClosed = true;
      this.#leave(standing, close);
      reader.close();
    };
    standing.streams.add(close);
    // Checked now, so that a quiet stream also ends: reads would otherwise be the only trigger.
    if (standing.isStale) void this.#check(standing);
    return {
      close,
      next: async () => {
        const frames = isClosed ? null : await reader.next();
        if (frames === null) close();
        else await this.#check(standing);
        return isClosed ? null : frames;
      },
    };
  }

  #enter(caller: Caller): CallerStreams {
    const known = this.#standings.get(caller.grant);
    if (known) return known;
    const standing: CallerStreams = {
      ...{ caller, streams: new Set(), until: Number.POSITIVE_INFINITY, isStale: true, looking: null },
      cancelTimer: () => {},
    };
    this.#standings.set(caller.grant, standing);
    return standing;
  }

  #leave(standing: CallerStreams, close: () => void): void {
    standing.streams.delete(close);
    if (standing.streams.size > 0) return;
    standing.cancelTimer();
    const { grant } = standing.caller;
    if (this.#standings.get(grant) === standing) this.#standings.delete(grant);
  }

  #changed(): void {
    for (const standing of this.#standings.values()) standing.isStale = true;
    if (this.#isRoundDue || this.#standings.size === 0) return;
    this.#isRoundDue = true;
    // Tokens and sessions may both report the same change, in one turn.
    setImmediate(() => {
      this.#isRoundDue = false;
      void this.#checkAll();
    });
  }

  async #checkAll(): Promise<void> {
    // One after another, so that other work runs between checks.
    for (const standing of [...this.#standings.values()]) await this.#check(standing);
  }

  /** Ends the streams of a caller who is no longer authorised. Never rejects. */
  async #check(standing: CallerStreams): Promise<void> {
    while (standing.streams.size > 0 && (standing.isStale || standing.looking)) {
      standing.looking ??= this.#look(standing).finally(() => {
        standing.looking = null;
      });
      await standing.looking;
    }
    this.#endExpired(standing);
  }

  async #look(standing: CallerStreams): Promise<void> {
    standing.isStale = false;
    try {
      standing.until = await this.#parts.gate.rightsEnd(standing.caller);
    } catch (error) {
      this.#parts.log.warn("a stream was ended, because its caller could not be looked up", { error });
      standing.until = 0;
    }
    this.#wait(standing);
  }

  #wait(standing: CallerStreams): void {
    standing.cancelTimer();
    const ms = standing.until - this.#parts.clock.now();
    if (ms <= 0 || ms === Number.POSITIVE_INFINITY || standing.streams.size === 0) return;
    standing.cancelTimer = this.#parts.clock.after(Math.min(ms, LONGEST_WAIT_MS), () => {
      this.#endExpired(standing);
      this.#wait(standing);
    });
  }

  #endExpired({ until, streams }: CallerStreams): void {
    if (this.#parts.clock.now() < until) return;
    for (const close of [...streams]) close();
  }
}
