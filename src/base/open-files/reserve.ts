import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";

const ROOM_WAIT_MS = 10_000;
const ROOM_STEP_MS = 20;

/**
 * Descriptors kept open without use, so that connections cannot take them. They are released for a moment when the
 * program itself has to open something.
 */
class OpenFilesReserve {
  #size = 0;
  readonly #held: number[] = [];

  /** Number of descriptors currently held. */
  get held(): number {
    return this.#held.length;
  }

  /** Whether some are missing: the process has run out of descriptors now or did recently. */
  get isShort(): boolean {
    return this.#held.length < this.#size;
  }

  /** Changes the size of the reserve and fills it as far as possible. 0 releases all. */
  resize(size: number): void {
    this.#size = size;
    this.#close(this.#held.length - size);
    this.refill();
  }

  /** Takes back descriptors that were lent or could not be opened before. Cheap if none is missing. */
  refill(): void {
    while (this.#held.length < this.#size) {
      const descriptor = openNothing();
      if (descriptor === null) return;
      this.#held.push(descriptor);
    }
  }

  /**
   * Runs `open` with `count` descriptors released for it. They are taken back when it returns, so by then `open` MUST
   * have opened what it needs.
   */
  lend<Result>(count: number, open: () => Result): Result {
    this.#close(Math.min(count, this.#held.length));
    try {
      return open();
    } finally {
      this.refill();
    }
  }

  /** Whether `count` descriptors can be opened besides those held. Takes about 1 µs each. */
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
   * Resolves when a descriptor can be opened. MUST be awaited before a request is sent: while clients use all
   * descriptors, a connection to an upstream would fail although nothing is wrong with the upstream. Resolves after
   * a few seconds in any case, and when the signal aborts.
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

/** The reserve of this process, since descriptors belong to a process as a whole. Empty until a server resizes it. */
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

/** Whether an error means that the process (EMFILE) or the machine (ENFILE) has no descriptor left. */
export function isOutOfOpenFiles(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE");
}
