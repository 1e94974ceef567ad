import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { Leases } from "../limits/leases.ts";

/** A client that has taken nothing for so long is no longer waited for, as with streams of events. */
const STALL_MS = 5 * 60_000;
/** Each holds some chunks in memory, and takes a turn of the event loop after every one. */
const EXPORTS: DownloadLimits = { what: "exports", perWorkspace: 2, perNode: 8 };
const RETRY_SECONDS = 10;

/** How many downloads of a kind may go on at once. */
export interface DownloadLimits {
  /** What they are, in words for their readers. */
  readonly what: string;
  readonly perWorkspace: number;
  readonly perNode: number;
}

/** The downloads of one kind that are going on now. */
export class OpenDownloads {
  readonly #limits: DownloadLimits;
  readonly #leases = new Leases();

  constructor(limits: DownloadLimits = EXPORTS) {
    this.#limits = limits;
  }

  /**
   * Takes a place for a download. @returns what gives it back, once or more often
   * @throws Problem 429 `rate_limited`
   */
  take(workspaceId: number, owner: string): () => void {
    const { what, perWorkspace, perNode } = this.#limits;
    if (this.#leases.held(workspaceId) >= perWorkspace)
      throw tooMany(`The workspace has ${perWorkspace} ${what} going on.`);
    if (this.#leases.total >= perNode) throw tooMany(`The server has no room for more ${what} now.`);
    this.#leases.take(workspaceId, owner);
    return () => this.#leases.release(owner);
  }
}

function tooMany(detail: string): Problem {
  return new Problem("rate_limited", detail, { headers: { "Retry-After": String(RETRY_SECONDS) } });
}

/** The client has taken nothing for minutes. */
export class StalledReader extends Error {
  override readonly name = "StalledReader";
}

export interface DownloadParts {
  readonly clock: Clock;
  /** Aborted when the client has left. */
  readonly signal: AbortSignal;
  /** Called first when the reading ends. MUST make `chunks` stop even if it has nothing to yield for a long time. */
  readonly stop: () => void;
  /** Told what broke it off, where the client did not leave. */
  readonly failed: (error: unknown) => void;
  /** Called once, when nothing is read for it any more. */
  readonly ended: () => void;
}

/**
 * Chunks as the body of an answer, each made when the one before was taken: Bun asks for more as long as the connection
 * takes it, which is some 4 MB ahead of the reader on a machine's own network. A client that leaves ends the reading; one
 * that takes nothing is given up. What fails is passed on as an error, on which Bun breaks off the connection without the
 * end mark of the body: a part of an export MUST NOT look like all of it.
 */
export function downloadStream(
  chunks: AsyncGenerator<Uint8Array, void>,
  { clock, signal, stop, failed, ended }: DownloadParts,
): ReadableStream<Uint8Array> {
  let closing: Promise<void> | undefined;
  let stopWaiting = () => {};
  let leave = () => {};

  /** Resolves when the reading has ended, behind the chunk that is being made now. */
  function finish(): Promise<void> {
    if (!closing) {
      stopWaiting();
      signal.removeEventListener("abort", leave);
      stop();
      closing = chunks
        .return()
        .then(() => {}, failed)
        .finally(ended);
    }
    return closing;
  }

  function breakOff(controller: ReadableStreamDefaultController<Uint8Array>, error: unknown): void {
    if (closing) return;
    void finish();
    failed(error);
    controller.error(error);
  }

  return new ReadableStream<Uint8Array>({
    start(controller) {
      leave = () => {
        void finish();
        controller.error(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      if (signal.aborted) leave();
    },
    async pull(controller) {
      stopWaiting();
      try {
        const next = await chunks.next();
        if (closing) return;
        if (next.done) {
          // Before the end: Bun takes a time limit for the connection only while its answer goes on.
          await finish();
          controller.close();
          return;
        }
        controller.enqueue(next.value);
        stopWaiting = clock.after(STALL_MS, () =>
          breakOff(controller, new StalledReader("the client has taken nothing for five minutes")),
        );
      } catch (error) {
        breakOff(controller, error);
      }
    },
    cancel: finish,
  });
}
