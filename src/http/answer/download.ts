import type { Clock } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import { Leases } from "../../limits/leases.ts";

/** A client that has read nothing for this long is disconnected. The same applies to event streams. */
const STALL_MS = 5 * 60_000;
/** Each export keeps some chunks in memory and takes one turn of the event loop per chunk. */
const EXPORTS: DownloadLimits = { what: "exports", perWorkspace: 2, perNode: 8 };
const RETRY_SECONDS = 10;

/** How many downloads of a kind may run at once. */
export interface DownloadLimits {
  /** The name of these downloads in error messages. */
  readonly what: string;
  readonly perWorkspace: number;
  readonly perNode: number;
}

/** The running downloads of one kind. */
export class OpenDownloads {
  readonly #limits: DownloadLimits;
  readonly #leases = new Leases();

  constructor(limits: DownloadLimits = EXPORTS) {
    this.#limits = limits;
  }

  /**
   * Takes a slot for a download.
   * @returns a function that releases it; safe to call more than once
   * @throws Problem 429 `rate_limited`
   */
  take(workspaceId: number, owner: string): () => void {
    const { what, perWorkspace, perNode } = this.#limits;
    if (this.#leases.held(workspaceId) >= perWorkspace)
      throw tooMany(`The workspace already has ${perWorkspace} ${what} in progress. Retry when one is done.`);
    if (this.#leases.total >= perNode)
      throw tooMany(`The server cannot run more ${what} now. Retry shortly.`);
    this.#leases.take(workspaceId, owner);
    return () => this.#leases.release(owner);
  }
}

function tooMany(detail: string): Problem {
  return new Problem("rate_limited", detail, { headers: { "Retry-After": String(RETRY_SECONDS) } });
}

/** The client has read nothing for minutes. */
export class StalledReader extends Error {
  override readonly name = "StalledReader";
}

export interface DownloadParts {
  readonly clock: Clock;
  /** How long a client may read nothing before it is abandoned. Default: five minutes. */
  readonly stallMs?: number;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
  /** Called first when reading ends. MUST make `chunks` stop even if it has nothing to yield for a long time. */
  readonly stop: () => void;
  /** Called at once with a function that cuts off the download. The function's reason is then passed to `failed`. */
  readonly breakable?: (breakOff: (reason: Error) => void) => void;
  /** Called with the error that cut off the download, unless the client left. */
  readonly failed: (error: unknown) => void;
  /** Called once, when reading for the download has ended. */
  readonly ended: () => void;
}

/**
 * Sends chunks as a response body. Each chunk is produced once the previous one has been taken. Bun asks for more as
 * long as the connection accepts it: about 4 MB ahead of a local reader. Reading ends when the client leaves, and a
 * client that stops reading is abandoned. Failures are passed on as errors, so Bun cuts off the connection without
 * the body's end marker: part of an export MUST NOT look like all of it.
 */
export function downloadStream(
  chunks: AsyncGenerator<Uint8Array, void>,
  { clock, stallMs = STALL_MS, signal, stop, breakable, failed, ended }: DownloadParts,
): ReadableStream<Uint8Array> {
  let closing: Promise<void> | undefined;
  let stopWaiting = () => {};
  let leave = () => {};

  /** Resolves when reading has ended, after the chunk in progress. */
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
      else breakable?.((reason) => breakOff(controller, reason));
    },
    async pull(controller) {
      stopWaiting();
      try {
        const next = await chunks.next();
        if (closing) return;
        if (next.done) {
          // Before closing: Bun accepts a timeout for the connection only while its response is in progress.
          await finish();
          controller.close();
          return;
        }
        controller.enqueue(next.value);
        stopWaiting = clock.after(stallMs, () => {
          const reason = `the client has read nothing for ${stallMs / 60_000} minutes`;
          breakOff(controller, new StalledReader(reason));
        });
      } catch (error) {
        breakOff(controller, error);
      }
    },
    cancel: finish,
  });
}
