import type { Caller } from "../../access/caller.ts";
import { hashSecretHex } from "../../access/secret.ts";
import { type ValidUntilParts, validUntil } from "../../access/valid-until.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Signal } from "../../base/signal.ts";
import type { EventReader } from "../../tasks/events/hub.ts";
import { readCredential } from "../caller/credential.ts";

export interface OpenCallerParts extends ValidUntilParts {
  readonly tokens: { readonly changed: Signal<void> };
  readonly sessions: ValidUntilParts["sessions"] & { readonly changed: Signal<void> };
  readonly clock: Clock;
  readonly log: Log;
  /** Known to the command line on this machine, which has no token. */
  readonly operatorSecret: string;
}

/** The longest timer. Tokens expire by the wall clock, which may be changed while a timer runs. */
const LONGEST_WAIT_MS = 3_600_000;

/** The caller that opened a stream, and its credential. */
export interface Opener {
  readonly caller: Caller;
  /** The token's secret; null for a session or the operator. */
  readonly secret: string | null;
}

/** All streams opened with one secret or session. */
interface CallerStreams {
  readonly opener: Opener;
  /** Each function stops reading one stream. */
  readonly streams: Set<() => void>;
  /** When the rights end, in milliseconds since the Unix epoch, as of the last check. */
  until: number;
  /** The rights may have changed since the last check. */
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
  readonly #standings = new Map<string, CallerStreams>();
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

  openerOf(caller: Caller, headers: Headers): Opener {
    const credential = readCredential(headers, this.#parts.operatorSecret);
    return { caller, secret: credential.kind === "bearer" ? credential.secret : null };
  }

  /** When an opener's rights end, in milliseconds since the Unix epoch; undefined if it has none. */
  validUntil({ caller, secret }: Opener): Promise<number | undefined> {
    return validUntil(this.#parts, caller, secret);
  }

  /**
   * Wraps a reader so that it ends when its opener loses its rights. It MUST be read or closed. If the rights cannot
   * be checked, reading also ends; the client may reconnect and is then authenticated again.
   */
  guard(reader: EventReader, opener: Opener): EventReader {
    let isClosed = false;
    const standing = this.#enter(opener);
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

  #enter(opener: Opener): CallerStreams {
    const key = keyOf(opener);
    const known = this.#standings.get(key);
    if (known) return known;
    const standing: CallerStreams = {
      ...{ opener, streams: new Set(), until: Number.POSITIVE_INFINITY, isStale: true, looking: null },
      cancelTimer: () => {},
    };
    this.#standings.set(key, standing);
    return standing;
  }

  #leave(standing: CallerStreams, close: () => void): void {
    standing.streams.delete(close);
    if (standing.streams.size > 0) return;
    standing.cancelTimer();
    const key = keyOf(standing.opener);
    if (this.#standings.get(key) === standing) this.#standings.delete(key);
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

  /** Ends the streams of an opener that is no longer authorised. Never rejects. */
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
      standing.until = (await this.validUntil(standing.opener)) ?? 0;
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

function keyOf({ caller: { workspaceId, actor, session }, secret }: Opener): string {
  const by = session ? session.id : secret === null ? actor : hashSecretHex(secret);
  return `${workspaceId} ${by}`;
}
