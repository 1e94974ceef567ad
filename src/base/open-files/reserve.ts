import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";

const ROOM_WAIT_MS = 10_000;
const ROOM_STEP_MS = 20;

/**
 * Descriptors that are held open on nothing, so that connections cannot take them. What the program itself has to open
 * borrows them.
 */
export class OpenFilesReserve {
  #size = 0;
  readonly #held: number[] = [];

  /** Descriptors that are held now. */
  get held(): number {
    return this.#held.length;
  }

  /** True if some are missing: the process has no descriptor left, or had none lately. */
  get isShort(): boolean {
    return this.#held.length < this.#size;
  }

  /** Holds so many from now on, as far as there are any. 0 gives all of them back. */
  resize(size: number): void {
    this.#size = size;
    this.#close(this.#held.length - size);
    this.refill();
  }

  /** Takes back what was lent or given away. Cheap when nothing is missing. */
  refill(): void {
    while (this.#held.length < this.#size) {
      const descriptor = openNothing();
      if (descriptor === null) return;
      this.#held.push(descriptor);
    }
  }

  /**
   * Runs `open` with so many descriptors free for it. They are taken back when it returns, so `open` MUST have opened by
   * then what it needs.
   */
  lend<Result>(count: number, open: () => Result): Result {
    this.#close(Math.min(count, this.#held.length));
    try {
      return open();
    } finally {
      this.refill();
    }
  }

  /** True if `count` descriptors can be opened beside those that are held. Takes about 1 µs for each. */
  hasRoom(count: number): boolean {
    const opened: number[] = [];
    while (opened.length < count) {
      const descriptor = openNothing();
      if (descriptor === null) break;
      opened.push(descriptor);
    }
    for (const descriptor of opened) closeSync(descriptor);
    return opened.length === count;
  }

  /**
   * Resolves when a descriptor can be opened, at once if there is one. To be awaited before a request is sent: while clients have taken all of them, a connection to an upstream would fail
   * though nothing is wrong with the upstream. Resolves after some seconds in any case, and when the signal aborts.
   */
  async untilRoom(signal?: AbortSignal | null): Promise<void> {
    for (let waited = 0; waited < ROOM_WAIT_MS && signal?.aborted !== true; waited += ROOM_STEP_MS) {
      if (this.hasRoom(1)) return;
      await new Promise((resolve) => setTimeout(resolve, ROOM_STEP_MS));
    }
  }

  #close(count: number): void {
    for (const descriptor of this.#held.splice(0, Math.max(0, count))) closeSync(descriptor);
  }
}

/** The one of this process: descriptors belong to a process as a whole. Empty until a server resizes it. */
export const openFilesReserve = new OpenFilesReserve();

/** Null if the process, or the machine, has no descriptor left. */
function openNothing(): number | null {
  try {
    return openSync(devNull, "r");
  } catch (error) {
    if (isOutOfOpenFiles(error)) return null;
    throw error;
  }
}

/** True for the errors of a process (EMFILE) or a machine (ENFILE) that has no descriptor left. */
export function isOutOfOpenFiles(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE");
}
