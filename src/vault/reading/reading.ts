import type { Log } from "../../base/log.ts";
import type { VaultSettings } from "../../config/config.ts";
import { READ_DOCUMENTS, readingCommand } from "../../reading/command.ts";
import { JobOverLimit, JobRefused } from "../../reading/job-errors.ts";
import { ReaderFailed } from "../../reading/reader.ts";
import type { Turn } from "../../reading/workspace-round-robin.ts";
import type { PreparedDocument, PrepareRequest } from "../messages.ts";
import type { ContentType } from "../read/document.ts";
import { UnreadableDocument } from "../read/fault.ts";
import { parseContentType } from "../read/media-type.ts";
import { WorkerThreads } from "../worker-threads.ts";
import { DocumentReaders } from "./document-readers.ts";

export interface DocumentReadingOptions {
  readonly limits: VaultSettings;
  /** The program's entry, which starts a reading process. */
  readonly main: URL;
  /** The program of the vault's threads. */
  readonly worker: URL;
  readonly log: Log;
}

/**
 * Maximum number of UTF-16 code units of text that is read in a thread of this process. Its memory is proportional,
 * since the types read there never produce text longer than their source (see `test/vault/reading/lane.test.ts`).
 */
const LIGHT_TEXT = 256 * 1024;
const LIGHT_TYPES: readonly ContentType[] = [
  "text/plain",
  "text/markdown",
  "text/html",
  "application/xhtml+xml",
];

/** The time limit for reading a document: a base, plus an allowance for each MiB sent. */
const BASE_MS = 20_000;
const MS_PER_MIB = 4_000;
const MIB = 1024 * 1024;

/** Maximum number of documents waiting for each kind of reader. */
const WAITING = { perWorkspace: 64, total: 1_024 };
/** After reading many documents, a reader retains about 40 MB. */
const IDLE_MS = 5_000;

/**
 * Reads documents and builds their passages and index: short text in a thread, everything else in processes with a
 * memory limit.
 */
export class DocumentReading {
  readonly #thread: WorkerThreads;
  readonly #readers: DocumentReaders;

  constructor({ limits, main, worker, log }: DocumentReadingOptions) {
    this.#thread = new WorkerThreads({
      program: worker,
      setup: { index: null },
      threads: 1,
      cacheBytes: 0,
      timeoutMs: Math.min(BASE_MS, limits.mostMs),
      atOnce: 1,
      waiting: WAITING,
      idleMs: IDLE_MS,
    });
    this.#readers = new DocumentReaders({
      command: readingCommand(main, READ_DOCUMENTS, limits.memoryBytes),
      most: limits.readers,
      timeFor: (request) => timeAllowed(request, limits.mostMs),
      waiting: WAITING,
      idleMs: IDLE_MS,
      failed(workspaceId, error) {
        if (error instanceof JobOverLimit)
          log.warn("a document took too much time or memory to read", {
            workspace_id: workspaceId,
            reason: error.message,
          });
        if (error instanceof ReaderFailed) log.error("documents cannot be read", { error });
      },
    });
  }

  /**
   * @throws JobRefused for a document that cannot be read; JobOverLimit for one that takes too much time or memory;
   *   Problem 429 `queue_full`; StoreUnavailable once stopped
   */
  async prepare(request: PrepareRequest, turn: Turn): Promise<PreparedDocument> {
    return isLight(request) ? this.#thread.do("prepare", request, turn) : this.#readers.do(request, turn);
  }

  /** Ends the thread and all processes, and waits for them. */
  async stop(): Promise<void> {
    await Promise.all([this.#thread.stop(), this.#readers.stop()]);
  }
}

/** Whether a document can be read in this process: see `LIGHT_TEXT`. */
export function isLight({ content }: Pick<PrepareRequest, "content">): boolean {
  const length = content.kind === "text" ? content.text.length : content.data.length;
  return LIGHT_TYPES.includes(typeOf(content.type)) && length <= LIGHT_TEXT;
}

/** @throws JobRefused for an unsupported type */
function typeOf(contentType: string): ContentType {
  try {
    return parseContentType(contentType).type;
  } catch (error) {
    if (error instanceof UnreadableDocument) throw new JobRefused(error.field, error.message);
    throw error;
  }
}

/** The time limit for reading a document, by its size. */
export function timeAllowed({ content }: Pick<PrepareRequest, "content">, mostMs: number): number {
  const length = content.kind === "text" ? content.text.length : content.data.length;
  return Math.min(mostMs, BASE_MS + Math.ceil(length / MIB) * MS_PER_MIB);
}
