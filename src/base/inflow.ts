import type { Clock } from "./clock.ts";
import { RoundRobin, type WaitingItem } from "./round-robin.ts";

/**
 * The cost of processing data from outside, in bytes: handling a message takes as long as measuring 16 KiB, a line
 * without a message as long as 256 bytes, and parsing and walking a member of JSON as long as 64 bytes.
 */
export interface Arrival {
  readonly bytes: number;
  readonly lines?: number;
  readonly messages?: number;
  readonly members?: number;
}

const PER_LINE = 256;
const PER_MESSAGE = 16 * 1024;
const PER_MEMBER = 64;

/** The amount processed in one turn of the event loop, whoever sent it: 32 messages, which take about a millisecond. */
const PER_TURN = 32 * PER_MESSAGE;
/** After this time, no more calls begin in a turn. */
const LONG_TURN_MS = 20;
/**
 * Calls and reads that have waited begin until a turn has lasted this long: many short ones, whose writes then share a
 * commit, or one long one.
 */
const WAITED_TURN_MS = 5;
/** The most of them that begin in one turn. */
const MOST_AT_ONCE = 64;
/** The amount that one source may send at once: 20,000 messages. */
const BURST = 20_000 * PER_MESSAGE;
/** The amount that one source may send in the long run: 1,000 messages or 16 MB per second. */
const PER_SECOND = 1_000 * PER_MESSAGE;

interface WaitingPart extends WaitingItem {
  readonly weight: number;
  readonly begin: () => void;
}

/**
 * Shares the event loop's turns between everything that arrives from outside. Reading a stream whose data has
 * already arrived never yields to the event loop, so all other work would wait until that stream pauses. Workspaces take
 * turns, and so do the streams of each workspace.
 */
export class LoopTurns {
  /** A stream waits with one part at a time, so a workspace's parts, taken in order, give its streams their turns. */
  readonly #waiting = new RoundRobin<WaitingPart>();
  #left = PER_TURN;
  #isCounting = false;

  /** Takes a share of this turn, or of a later one. @returns undefined if there is no wait */
  take(workspaceId: number, weight: number): Promise<void> | undefined {
    // There are waiting parts only while there is no room, or while the next turn is about to begin.
    if (this.#left > 0 && this.#waiting.size === 0) {
      this.#left -= weight;
      this.#count();
      return undefined;
    }
    return new Promise((begin) => this.#waiting.add({ workspaceId, weight, begin }));
  }

  #count(): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    // Runs after the sockets of this turn have been read.
    setImmediate(() => {
      this.#isCounting = false;
      // A part that exceeded its turn does not delay others: it has already taken that time.
      this.#left = PER_TURN;
      for (let next = this.#waiting.take(); next; next = this.#waiting.take()) {
        this.#left -= next.weight;
        next.begin();
        if (this.#left <= 0) break;
      }
      if (this.#left <= 0 || this.#waiting.size > 0) this.#count();
    });
  }
}

/**
 * A workspace begins no calls while more of its reads than this wait. A call holds what it has read, often megabytes,
 * while its next read waits.
 */
const MOST_WAITING_READS = 4;
/** After this many reads in a row, a call begins nevertheless: walks may keep more reads waiting for minutes. */
const MOST_READS_IN_A_ROW = 16;

/** What waits of a workspace, in order. Each begins when it is called. */
class WaitingCalls {
  readonly #reads = new Set<() => void>();
  readonly #calls = new Set<() => void>();
  #readsInARow = 0;

  get size(): number {
    return this.#reads.size + this.#calls.size;
  }

  add(kind: "read" | "call", begin: () => void): void {
    (kind === "read" ? this.#reads : this.#calls).add(begin);
  }

  /** Takes a read and a call in turn, or several reads for each call while many reads wait. */
  take(): (() => void) | undefined {
    const readsPerCall = this.#reads.size <= MOST_WAITING_READS ? 1 : MOST_READS_IN_A_ROW;
    const isCall = this.#reads.size === 0 || this.#readsInARow >= readsPerCall;
    const waiting = isCall && this.#calls.size > 0 ? this.#calls : this.#reads;
    const [next] = waiting;
    if (next) waiting.delete(next);
    this.#readsInARow = waiting === this.#reads ? this.#readsInARow + 1 : 0;
    return next;
  }
}

/**
 * Shares the event loop's turns between calls and their reads. How long one takes is known only once it has run, which
 * is after it was begun: checking arguments can take 50 ms. So once a turn has lasted long, or has read much, calls
 * and reads wait, and workspaces take turns. They begin one after another: each only once the one before has done what
 * it can without waiting, and only while its turn is short.
 */
export class CallTurns {
  /** What waits, by workspace, in the order of the round. */
  readonly #waiting = new Map<number, WaitingCalls>();
  readonly #now: () => number;
  #size = 0;
  /** How much may still be read in this turn. */
  #left = PER_TURN;
  #isCounting = false;
  /** When this turn began to be counted. */
  #began = 0;
  /** When those that have waited began to be served in this turn. */
  #served = 0;

  /** @param now in milliseconds */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /** Waits for a later turn if this one has lasted long. @returns undefined if there is no wait */
  enter(workspaceId: number): Promise<void> | undefined {
    const hasTime = !this.#isCounting || this.#now() - this.#began <= LONG_TURN_MS;
    this.#count();
    return this.#hasRoom && hasTime ? undefined : this.#wait(workspaceId, "call");
  }

  /** Waits for a later turn if this one has read much. @returns undefined if there is no wait */
  read(workspaceId: number): Promise<void> | undefined {
    return this.#hasRoom ? undefined : this.#wait(workspaceId, "read");
  }

  /** Counts what was read, in bytes. */
  spend(bytes: number): void {
    this.#left -= bytes;
    this.#count();
  }

  /** Something waits only while there is no room, or while the next turn is about to begin. */
  get #hasRoom(): boolean {
    return this.#left > 0 && this.#waiting.size === 0;
  }

  #wait(workspaceId: number, kind: "read" | "call"): Promise<void> {
    return new Promise((begin) => {
      const waiting = this.#waiting.get(workspaceId) ?? new WaitingCalls();
      waiting.add(kind, begin);
      this.#waiting.set(workspaceId, waiting);
      this.#size += 1;
      this.#count();
    });
  }

  #count(): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    this.#began = this.#now();
    // These run after the sockets of this turn have been read, each once the microtasks of the one before are done.
    setImmediate(() => this.#beginTurn());
    for (let place = 1; place < Math.min(MOST_AT_ONCE, this.#size); place++) {
      setImmediate(() => this.#beginAnother());
    }
  }

  #beginTurn(): void {
    this.#isCounting = false;
    this.#left = PER_TURN;
    this.#served = this.#now();
    const begin = this.#next();
    begin?.();
    if (begin || this.#size > 0) this.#count();
  }

  #beginAnother(): void {
    if (this.#left > 0 && this.#now() - this.#served <= WAITED_TURN_MS) this.#next()?.();
  }

  #next(): (() => void) | undefined {
    for (const [workspaceId, waiting] of this.#waiting) {
      const next = waiting.take();
      this.#size -= 1;
      // The workspace goes to the end of the round.
      this.#waiting.delete(workspaceId);
      if (waiting.size > 0) this.#waiting.set(workspaceId, waiting);
      return next;
    }
    return undefined;
  }
}

const turns = new LoopTurns();
/** Apart from the turns of what arrives, so that many streams do not delay calls. */
const callTurns = new CallTurns();

function weightOf({ bytes, lines = 0, messages = 0, members = 0 }: Arrival): number {
  return bytes + lines * PER_LINE + messages * PER_MESSAGE + members * PER_MEMBER;
}

/**
 * Takes a share of one of the event loop's turns, which all incoming data shares. MUST be awaited before the next
 * part is read.
 * @returns undefined if there is no wait
 */
export function takeTurn(workspaceId: number, arrival: Arrival): Promise<void> | undefined {
  return turns.take(workspaceId, weightOf(arrival));
}

/**
 * Waits for a later turn of the event loop if this one is used up. MUST be awaited before the work of a call begins.
 * @returns undefined if there is no wait
 */
export function enterTurn(workspaceId: number): Promise<void> | undefined {
  return callTurns.enter(workspaceId);
}

/**
 * Takes one of the event loop's turns for a slice of a long walk, which takes about a millisecond. However many walks
 * run at once, one slice runs per turn, and workspaces take turns. A walk that yields with a `setImmediate` of its own
 * would share its turn with the slices of all others.
 * @returns undefined if there is no wait
 */
export function takeWholeTurn(workspaceId: number): Promise<void> | undefined {
  return turns.take(workspaceId, PER_TURN);
}

/**
 * Waits for a later turn of the event loop if much has been read in this one. MUST be awaited before something is read
 * whose size is known only once it is read; then `countRead` counts it.
 * @returns undefined if there is no wait
 */
export function readTurn(workspaceId: number): Promise<void> | undefined {
  return callTurns.read(workspaceId);
}

export function countRead(bytes: number): void {
  callTurns.spend(bytes);
}

/**
 * Paces the data from one source: a connector, or a model's answer. Beyond its rate, the source is read more slowly,
 * so it has to wait when it writes.
 */
export class Inflow {
  readonly #clock: Clock;
  readonly #workspaceId: number;
  /** The amount that may arrive at once. Negative after more has arrived. */
  #left = BURST;
  #since: number;

  constructor(clock: Clock, workspaceId: number) {
    this.#clock = clock;
    this.#workspaceId = workspaceId;
    this.#since = clock.monotonic();
  }

  /** MUST be awaited before the data that has arrived is processed. @returns undefined if there is no wait */
  take(arrival: Arrival): Promise<void> | undefined {
    const weight = weightOf(arrival);
    const now = this.#clock.monotonic();
    this.#left = Math.min(BURST, this.#left + ((now - this.#since) / 1_000) * PER_SECOND) - weight;
    this.#since = now;
    return this.#left >= 0
      ? turns.take(this.#workspaceId, weight)
      : this.#later(weight, (-this.#left / PER_SECOND) * 1_000);
  }

  /** The message was a requested answer, so it does not count: the rate limits unrequested messages. */
  refund(): void {
    this.#left = Math.min(BURST, this.#left + PER_MESSAGE);
  }

  async #later(weight: number, ms: number): Promise<void> {
    await new Promise<void>((resolve) => this.#clock.after(Math.ceil(ms), resolve));
    await turns.take(this.#workspaceId, weight);
  }
}
