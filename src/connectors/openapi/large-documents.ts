import { type FairPlace, FairPlaces } from "../../limits/fair-places.ts";
import { ConnectorError } from "../source.ts";

/**
 * The size in bytes from which a document counts as large. Few documents do; 8 smaller ones at once take at most 64
 * MiB.
 */
const LARGE = 8 * 1024 * 1024;
/**
 * Maximum number of large documents of one workspace. Each is in memory as bytes and as text, and briefly takes about
 * 100 MB.
 */
const PER_WORKSPACE = 2;
const AT_ONCE = 4;

/** The large documents that are being fetched and read. */
export class LargeDocuments {
  readonly #places = new FairPlaces<number>({
    perHolder: PER_WORKSPACE,
    total: AT_ONCE,
    refused: () => new ConnectorError("unreachable", WAIT),
  });

  /** Number of large documents in memory. */
  get open(): number {
    return this.#places.taken;
  }

  /** For one document of a workspace. MUST be released. */
  begin(workspaceId: number): DocumentMemory {
    return new DocumentMemory(() => this.#places.take(workspaceId));
  }
}

/** The memory of one document, which takes a slot once it is large. */
export class DocumentMemory {
  readonly #take: () => FairPlace<number>;
  readonly #lost = new AbortController();
  #place: FairPlace<number> | undefined;

  constructor(take: () => FairPlace<number>) {
    this.#take = take;
  }

  /** Aborts if another workspace needs the slot. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** @throws ConnectorError `unreachable` if too many large documents are being read */
  readonly grow = (length: number): void => {
    if (this.#place || length <= LARGE) return;
    this.#place = this.#take();
    this.#place.endsBy(() => this.#lost.abort(new ConnectorError("unreachable", WAIT)));
  };

  release(): void {
    this.#place?.release();
  }
}

const WAIT = "Too many large documents are being read now. Refresh the connector later.";
