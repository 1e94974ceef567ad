import { type Clock, every } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";

const MIB = 1024 * 1024;
/** Bytes of all bodies that are being read at once: trickled on a hundred connections they would fill the memory. */
const WHOLE = 256 * MIB;
/** Of one workspace, however much of the whole is free: two documents of the largest size, and some. */
const PER_WORKSPACE = 192 * MIB;
/**
 * What a body has to bring in WINDOW_MS, unless it ends before: 4 KiB a second, half of what the slowest mobile connections
 * carry. A body that stands still gives back what it holds within 35 seconds.
 */
const LEAST_BYTES = 60 * 1024;
const WINDOW_MS = 15_000;
/** Looks at each body in a window. Counting looks, not time, spares bodies whose bytes wait while this process is busy. */
const LOOKS = 3;
const RETRY_SECONDS = 1;

/** A body that is being read. MUST be closed. */
export interface OpenBody {
  /**
   * Takes room for `bytes` more, before they are kept.
   * @throws Problem 429 `rate_limited` if its workspace has had its share; what `refused` was told, once it was
   */
  take(bytes: number): void;
  /** Notes bytes that have come, for the least rate. */
  came(bytes: number): void;
  /** Called once when the body has to be given up: it came too slowly, or others need the room. It holds nothing by then. */
  refused: (problem: Problem) => void;
  /** Gives back all that it holds. */
  close(): void;
}

const NOBODY_TOLD = (): void => {};

class Reading implements OpenBody {
  readonly workspaceId: number;
  readonly #shares: BodyShares;
  held = 0;
  /** The first look may come at once. */
  looks = -1;
  /** Bytes that came since the window began. */
  progress = 0;
  refusal: Problem | null = null;
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
 * The memory for bodies that are being read, in shares by max-min fairness: a workspace may hold what nobody else needs, up
 * to its cap. If all is held, one that has less than an equal share takes its room from the one that has most, whose
 * largest body is given up.
 */
export class BodyShares {
  readonly #clock: Clock;
  readonly #whole: number;
  readonly #perWorkspace: number;
  readonly #readings = new Set<Reading>();
  readonly #heldBy = new Map<number, number>();
  #held = 0;
  #endLooks: (() => void) | null = null;

  constructor({ clock, whole = WHOLE, perWorkspace = Math.min(PER_WORKSPACE, whole) }: BodySharesOptions) {
    this.#clock = clock;
    this.#whole = whole;
    this.#perWorkspace = perWorkspace;
  }

  /** Bytes held now. */
  get held(): number {
    return this.#held;
  }

  /** Begins to read a body of a caller that is known, and may make its call. */
  open(workspaceId: number): OpenBody {
    const reading = new Reading(this, workspaceId);
    this.#readings.add(reading);
    this.#endLooks ??= every(this.#clock, WINDOW_MS / LOOKS, () => this.#look());
    return reading;
  }

  /** @see OpenBody.take */
  take(reading: Reading, bytes: number): void {
    if (reading.refusal) throw reading.refusal;
    const { workspaceId } = reading;
    const wanted = (this.#heldBy.get(workspaceId) ?? 0) + bytes;
    if (wanted > this.#perWorkspace) throw full("The workspace's bodies hold as much as they may.");
    while (this.#held + bytes > this.#whole) {
      const workspaces = this.#heldBy.size + (this.#heldBy.has(workspaceId) ? 0 : 1);
      if (wanted > this.#whole / workspaces)
        throw full("The server is reading as many bodies as it can hold.");
      this.#giveUp(this.#largestOfMost(), full("The room for this body went to others, who had less of it."));
    }
    reading.held += bytes;
    this.#add(workspaceId, bytes);
  }

  /** The largest body of the workspace that holds most: where all is held, it holds more than an equal share. */
  #largestOfMost(): Reading {
    let most = { workspaceId: 0, held: 0 };
    for (const [workspaceId, held] of this.#heldBy) if (held > most.held) most = { workspaceId, held };
    let largest: Reading | undefined;
    for (const reading of this.#readings) {
      if (reading.workspaceId !== most.workspaceId) continue;
      if (!largest || reading.held > largest.held) largest = reading;
    }
    if (!largest) throw new Error("what is held belongs to a body");
    return largest;
  }

  #look(): void {
    for (const reading of [...this.#readings]) {
      reading.looks += 1;
      if (reading.looks < LOOKS) continue;
      if (reading.progress < LEAST_BYTES) this.#giveUp(reading, tooSlow());
      reading.looks = 0;
      reading.progress = 0;
    }
  }

  #giveUp(reading: Reading, problem: Problem): void {
    this.close(reading);
    reading.refusal = problem;
    reading.refused(problem);
  }

  /** @see OpenBody.close */
  close(reading: Reading): void {
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

/** The rest of such a body is not read: its connection ends with the answer. */
function full(detail: string): Problem {
  return new Problem("rate_limited", detail, {
    headers: { "Retry-After": String(RETRY_SECONDS), Connection: "close" },
  });
}

/** Not 408, at which browsers and proxies send the same body again by themselves: what came is half of a JSON text. */
function tooSlow(): Problem {
  const detail = `The body came too slowly: send ${LEAST_BYTES / 1024} KiB in ${WINDOW_MS / 1000} s, or all of it.`;
  return new Problem("invalid_json", detail, { headers: { Connection: "close" } });
}
