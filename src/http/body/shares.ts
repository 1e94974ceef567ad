import { type Clock, every } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";

const MIB = 1024 * 1024;
/**
 * Maximum number of bytes of all bodies being read at once. Without a limit, bodies trickling in on a hundred
 * connections would exhaust memory.
 */
const WHOLE = 256 * MIB;
/**
 * Maximum number of bytes for one workspace, however much is free: two documents of the largest size, and a little
 * more.
 */
const PER_WORKSPACE = 192 * MIB;
/**
 * The bytes that a body must deliver in each WINDOW_MS unless it ends: 4 KiB/s, half of what the slowest mobile
 * connections carry. A stalled body releases its memory within 35 seconds.
 */
const LEAST_BYTES = 60 * 1024;
const WINDOW_MS = 15_000;
/**
 * The number of checks of each body per window. Counting checks rather than time does not penalise bodies whose bytes
 * wait while this process is busy.
 */
const LOOKS = 3;
const RETRY_SECONDS = 1;

/** A body being read. MUST be closed. */
export interface OpenBody {
  readonly workspaceId: number;
  /**
   * Reserves room for `bytes` more, before they are kept.
   * @throws Problem 429 `rate_limited` if its workspace has used its share; the problem passed to `refused` if that
   *   was called before
   */
  take(bytes: number): void;
  /** Counts received bytes towards the minimum rate. */
  came(bytes: number): void;
  /**
   * Called once if the body is abandoned, because it is too slow or other bodies need the memory. By then it holds no
   * memory.
   */
  refused: (problem: Problem) => void;
  /** Everything has arrived, and is kept until `close`. It may still be dropped when other bodies need the memory. */
  complete(): void;
  /** Releases everything it holds. */
  close(): void;
}

const NOBODY_TOLD = (): void => {};

class BodyReading implements OpenBody {
  readonly workspaceId: number;
  readonly #shares: BodyShares;
  held = 0;
  /** Starts at -1 because the first check may come immediately. */
  looks = -1;
  /** Bytes received since the window began. */
  progress = 0;
  refusal: Problem | null = null;
  isComplete = false;
  refused: (problem: Problem) => void = NOBODY_TOLD;

  constructor(shares: BodyShares, workspaceId: number) {
    this.#shares = shares;
    this.workspaceId = workspaceId;
  }

  take(bytes: number): void {
    this.#shares.take(this, bytes);
  }

  came(bytes: number): void {
    this.progress += bytes;
  }

  complete(): void {
    this.isComplete = true;
  }

  close(): void {
    this.#shares.close(this);
  }
}

export interface BodySharesOptions {
  readonly clock: Clock;
  readonly whole?: number;
  readonly perWorkspace?: number;
}

/**
 * The memory for bodies being read, shared by max-min fairness: a workspace may use what nobody else needs, up to its
 * cap. When all of it is used, a workspace with less than an equal share takes room from the workspace with the most,
 * whose largest body is dropped.
 */
export class BodyShares {
  readonly #clock: Clock;
  readonly #whole: number;
  readonly #perWorkspace: number;
  readonly #readings = new Set<BodyReading>();
  readonly #heldBy = new Map<number, number>();
  #held = 0;
  #endLooks: (() => void) | null = null;

  constructor({ clock, whole = WHOLE, perWorkspace = Math.min(PER_WORKSPACE, whole) }: BodySharesOptions) {
    this.#clock = clock;
    this.#whole = whole;
    this.#perWorkspace = perWorkspace;
  }

  /** Bytes in use. */
  get held(): number {
    return this.#held;
  }

  /** Starts reading a body. The caller MUST already be authenticated and allowed to make the call. */
  open(workspaceId: number): OpenBody {
    const reading = new BodyReading(this, workspaceId);
    this.#readings.add(reading);
    this.#endLooks ??= every(this.#clock, WINDOW_MS / LOOKS, () => this.#look());
    return reading;
  }

  /** @see OpenBody.take */
  take(reading: BodyReading, bytes: number): void {
    if (reading.refusal) throw reading.refusal;
    const { workspaceId } = reading;
    const wanted = (this.#heldBy.get(workspaceId) ?? 0) + bytes;
    if (wanted > this.#perWorkspace)
      throw full("The workspace is sending too much at once. Retry when its other requests are done.");
    while (this.#held + bytes > this.#whole) {
      const workspaces = this.#heldBy.size + (this.#heldBy.has(workspaceId) ? 0 : 1);
      if (wanted > this.#whole / workspaces)
        throw full("The server is receiving too much at once. Retry shortly.");
      this.#giveUp(
        this.#largestOfMost(),
        full("The server needed the memory for requests of other workspaces. Retry shortly."),
      );
    }
    reading.held += bytes;
    this.#add(workspaceId, bytes);
  }

  /**
   * The largest body of the workspace that uses the most. When all memory is used, that workspace has more than an
   * equal share.
   */
  #largestOfMost(): BodyReading {
    let most = { workspaceId: 0, held: 0 };
    for (const [workspaceId, held] of this.#heldBy) if (held > most.held) most = { workspaceId, held };
    let largest: BodyReading | undefined;
    for (const reading of this.#readings) {
      if (reading.workspaceId !== most.workspaceId) continue;
      if (!largest || reading.held > largest.held) largest = reading;
    }
    if (!largest) throw new Error("no body holds the memory in use");
    return largest;
  }

  #look(): void {
    for (const reading of [...this.#readings]) {
      reading.looks += 1;
      if (reading.looks < LOOKS || reading.isComplete) continue;
      if (reading.progress < LEAST_BYTES) this.#giveUp(reading, tooSlow());
      reading.looks = 0;
      reading.progress = 0;
    }
  }

  #giveUp(reading: BodyReading, problem: Problem): void {
    this.close(reading);
    reading.refusal = problem;
    reading.refused(problem);
  }

  /** @see OpenBody.close */
  close(reading: BodyReading): void {
    this.#add(reading.workspaceId, -reading.held);
    reading.held = 0;
    this.#readings.delete(reading);
    if (this.#readings.size > 0) return;
    this.#endLooks?.();
    this.#endLooks = null;
  }

  #add(workspaceId: number, bytes: number): void {
    this.#held += bytes;
    const held = (this.#heldBy.get(workspaceId) ?? 0) + bytes;
    if (held === 0) this.#heldBy.delete(workspaceId);
    else this.#heldBy.set(workspaceId, held);
  }
}

/** The rest of the body is not read, so the connection closes with the response. */
function full(detail: string): Problem {
  return new Problem("rate_limited", detail, {
    headers: { "Retry-After": String(RETRY_SECONDS), Connection: "close" },
  });
}

/**
 * Not 408, because browsers and proxies automatically retry that with the same body. The part that has arrived is
 * incomplete JSON.
 */
function tooSlow(): Problem {
  const detail = `The body arrived too slowly: send at least ${LEAST_BYTES / 1024} KiB every ${WINDOW_MS / 1000} s.`;
  return new Problem("invalid_json", detail, { headers: { Connection: "close" } });
}
