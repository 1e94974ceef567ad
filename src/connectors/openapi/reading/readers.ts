import { Problem } from "../../../base/errors.ts";
import type { Log } from "../../../base/log.ts";
import { READ_API_DOCUMENTS, readingCommand } from "../../../reading/command.ts";
import { JobOverLimit } from "../../../reading/job-errors.ts";
import { ReaderFailed } from "../../../reading/reader.ts";
import { ReaderPool } from "../../../reading/readers.ts";
import { StoreUnavailable } from "../../../store/db.ts";
import { abandonable } from "../../abandonable.ts";
import { ConnectorError } from "../../source.ts";
import { DocumentFault } from "../fault.ts";
import type { ApiDocumentRequest, ApiReading, ReadApi } from "./messages.ts";
import { API_DOCUMENTS } from "./protocol.ts";

/**
 * Maximum number of bytes of memory. A document of 32 MiB takes about 400 MB, one with as many JSON values as
 * possible about 300 MB.
 */
const CEILING = 768 * 1024 * 1024;
const MOST_MS = 20_000;
/** Number of processes. No single workspace can use all of them: one is always left for the others. */
const PROCESSES = 2;
const WAITING = { perWorkspace: 64, total: 1_024 };
const IDLE_MS = 5_000;

/**
 * Reads OpenAPI documents in separate processes, with limits on memory and time: 2 MiB of YAML block a process for a
 * second. Workspaces take turns.
 */
export class ApiReaders {
  readonly #pool: ReaderPool<ApiDocumentRequest, ApiReading>;
  readonly #log: Log;

  /** `main`: the program's entry, used to start the processes. */
  constructor(main: URL, log: Log) {
    this.#log = log;
    this.#pool = new ReaderPool({
      protocol: API_DOCUMENTS,
      command: readingCommand(main, READ_API_DOCUMENTS, CEILING),
      most: PROCESSES,
      timeFor: () => MOST_MS,
      waiting: WAITING,
      idleMs: IDLE_MS,
      failed(workspaceId, error) {
        if (error instanceof ReaderFailed)
          log.error("the process that reads OpenAPI documents fails", { error });
        else log.warn("reading an OpenAPI document was abandoned", { workspace_id: workspaceId, error });
      },
    });
  }

  /** Reads the documents of one workspace. */
  of(workspaceId: number): ReadApi {
    return async (request, signal) => {
      try {
        return await abandonable(signal, () => this.#pool.do(request, { workspaceId, signal }));
      } catch (error) {
        if (error instanceof JobOverLimit) throw new DocumentFault(`its document ${error.message}`);
        if (signal.aborted) throw error;
        if (error instanceof Problem || error instanceof ReaderFailed || error instanceof StoreUnavailable) {
          throw new ConnectorError(
            "unreachable",
            "Its document cannot be read now. Refresh the connector later.",
          );
        }
        this.#log.error("reading an OpenAPI document failed unexpectedly", { error });
        throw new DocumentFault("its document cannot be read");
      }
    };
  }

  /** Ends all processes. Resolves when they have exited. */
  async stop(): Promise<void> {
    await this.#pool.stop();
  }
}
