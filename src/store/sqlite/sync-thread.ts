import { OutOfOpenFiles, startThread } from "../../base/open-files/thread.ts";
import { syncNow } from "./sync-now.ts";
import type { SyncReply } from "./sync-worker.ts";

/** Fewer syncs than this are not worth a thread, which takes 10 ms of CPU and some 10 MB. */
const SYNCS_WITHOUT_THREAD = 100;

/**
 * Syncs a file in a thread, so the event loop goes on. The thread is its own: those of Bun's pool, as many as there are
 * cores, also look up the names of hosts. With a name server that did not answer, commits waited 10 seconds in the pool.
 * Until the thread has started, and after it has failed, files are synced on the event loop.
 */
export class SyncThread {
  readonly #program: URL;
  #worker: Worker | null = null;
  #isReady = false;
  #syncsBefore = SYNCS_WITHOUT_THREAD;
  #pending: { readonly descriptor: number; readonly reply: PromiseWithResolvers<string | null> } | null =
    null;

  /** @param program `sync-worker.ts` */
  constructor(program: URL) {
    this.#program = program;
  }

  /**
   * Resolves once everything written to the file so far is on disk, through whichever descriptor. MUST NOT be called
   * again before that.
   */
  async sync(descriptor: number): Promise<void> {
    const failed = this.#isReady ? await this.#inThread(descriptor) : this.#here(descriptor);
    if (failed !== null) throw new SyncError(failed);
  }

  close(): void {
    const worker = this.#worker;
    this.#forget();
    worker?.terminate();
  }

  #here(descriptor: number): string | null {
    if (this.#syncsBefore > 0) this.#syncsBefore -= 1;
    else this.#start();
    return syncNow(descriptor);
  }

  #inThread(descriptor: number): Promise<string | null> {
    const reply = Promise.withResolvers<string | null>();
    this.#pending = { descriptor, reply };
    this.#worker?.postMessage(descriptor);
    return reply.promise;
  }

  #start(): void {
    if (this.#worker) return;
    this.#syncsBefore = SYNCS_WITHOUT_THREAD;
    try {
      const worker = startThread(this.#program);
      this.#worker = worker;
      worker.unref();
      worker.onmessage = ({ data }: MessageEvent<SyncReply>) => {
        if (this.#worker === worker) this.#replied(data);
      };
      worker.onerror = (event) => {
        event.preventDefault();
        if (this.#worker === worker) this.#ended();
      };
      worker.addEventListener("close", () => {
        if (this.#worker === worker) this.#ended();
      });
    } catch (error) {
      if (!(error instanceof OutOfOpenFiles)) throw error;
    }
  }

  /** Its first message says that it has started. */
  #replied({ failed }: SyncReply): void {
    const pending = this.#pending;
    this.#isReady = true;
    this.#pending = null;
    pending?.reply.resolve(failed);
  }

  #ended(): void {
    const pending = this.#pending;
    this.#forget();
    pending?.reply.resolve(syncNow(pending.descriptor));
  }

  #forget(): void {
    this.#worker = null;
    this.#isReady = false;
    this.#pending = null;
  }
}

/** The disk has failed to keep what was written. */
class SyncError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`the sync failed (${code})`);
    this.code = code;
  }
}
