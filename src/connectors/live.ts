import type { JsonObject } from "../agents/index.ts";
import type { Log } from "../base/log.ts";
import { ownText } from "../base/own-text.ts";
import type { Signal } from "../base/signal.ts";
import type { Connector, ConnectorStatus, PersistedConnector, StoredConnector } from "./connector.ts";
import {
  ConnectorError,
  type ConnectorFault,
  type SourceCall,
  type ToolAnswer,
  type ToolSource,
} from "./source.ts";
import { areSameTools, type KeptTool } from "./tools/kept-tool.ts";
import type { ListingAllowance } from "./tools/listing-allowance.ts";
import type { ToolMemory } from "./tools/memory-share.ts";

/** A call to an upstream that has ended. */
export interface ConnectorCall {
  readonly workspaceId: number;
  readonly connector: string;
  readonly outcome: "succeeded" | "failed";
  readonly durationMs: number;
}

export interface LiveParts {
  readonly log: Log;
  readonly now: () => number;
  /** Emits each call to an upstream, once it has ended. */
  readonly called: Signal<ConnectorCall>;
  /** Memory limits for tools. */
  readonly toolMemory: Pick<ToolMemory, "hold" | "release">;
  readonly allowance: Pick<ListingAllowance, "inTurn">;
  /** Called when the connector's status has changed. */
  statusChanged(): void;
}

/** The result of a connector's last listing. */
export type ListingResult = Pick<StoredConnector, "status" | "error" | "tools">;

/** The results of two listings in a row. */
export interface Relisting {
  readonly before: ListingResult;
  readonly now: ListingResult;
}

/** Faults that concern the upstream as a whole, not one call. */
const UNHEALTHY: ReadonlySet<ConnectorFault> = new Set([
  "unreachable",
  "timeout",
  "unavailable",
  "forbidden_address",
]);

/** A connector in use: its source, its tools and its status. */
export class LiveConnector {
  readonly stored: PersistedConnector;
  readonly #source: ToolSource | null;
  readonly #parts: LiveParts;
  #status: ConnectorStatus;
  #error: string | null;
  #output: string | undefined;
  #tools: readonly KeptTool[];
  /** Why its newest tools were not kept. Calls continue with the previous tools. */
  #limit: string | null = null;
  /** What its tools leave out, as of the last successful listing. */
  #omitted: string | null;
  #ended = false;
  #listing: Promise<unknown> = Promise.resolve();

  /** `source` null: the connector cannot be used, for the reason in `stored.error`. */
  constructor(
    { tools, ...stored }: PersistedConnector & Pick<StoredConnector, "tools">,
    source: ToolSource | null,
    parts: LiveParts,
  ) {
    this.stored = stored;
    this.#source = source;
    this.#parts = parts;
    this.#status = stored.status;
    this.#error = stored.error;
    this.#omitted = stored.status === "ready" ? stored.error : null;
    this.#tools = tools;
    const refusal = parts.toolMemory.hold(stored.workspaceId, stored.id, tools);
    if (refusal === undefined) return;
    // An earlier version may have stored more tools than now fit.
    this.#tools = [];
    this.#limit = this.#noRoom(refusal);
    if (this.#status !== "disabled") this.#status = "unreachable";
    this.#error ??= this.#limit;
  }

  get connector(): Connector {
    const { name, kind, scopes, authorisedBy, authorisedAt } = this.stored;
    const known = { name, kind, scopes, authorisedBy, authorisedAt };
    return { ...known, status: this.#status, error: this.#error, output: this.#output };
  }

  get tools(): readonly KeptTool[] {
    return this.#tools;
  }

  get said(): ListingResult {
    return { status: this.#status, error: this.#error, tools: this.#tools };
  }

  /**
   * Asks for the tools. If the upstream cannot be reached, the previous tools stay. Listings run one at a time. Never
   * throws.
   * @returns whether the listing succeeded
   */
  list(signal: AbortSignal): Promise<boolean> {
    return this.#inTurn(() => this.#list(signal));
  }

  /**
   * Like `list`. @returns the result just before this listing, which an earlier listing may have changed, and the new
   * one
   */
  listAnew(signal: AbortSignal): Promise<Relisting> {
    return this.#inTurn(async () => {
      const before = this.said;
      await this.#list(signal);
      return { before, now: this.said };
    });
  }

  #inTurn<Result>(list: () => Promise<Result>): Promise<Result> {
    const listing = this.#listing.then(list);
    this.#listing = listing;
    return listing;
  }

  /**
   * Takes over the result of another node's listing.
   * @returns whether the tools have changed
   */
  adopt({ status, error, tools }: ListingResult): boolean {
    if (this.#ended || !this.#source) return false;
    const isOther = !areSameTools(tools, this.#tools);
    try {
      if (isOther) this.#keep(tools);
    } catch (refusal) {
      this.#is("unreachable", this.#wordsOf(refusal));
      return false;
    }
    // The other node may be configured to disable it.
    if (status === "disabled") return isOther;
    if (status === "ready") this.#omitted = error;
    this.#is(status, error);
    return isOther;
  }

  async #list(signal: AbortSignal): Promise<boolean> {
    const source = this.#source;
    if (!source || this.#ended) return false;
    try {
      const { workspaceId } = this.stored;
      const tools = await this.#parts.allowance.inTurn(workspaceId, signal, () => source.list(signal));
      if (this.#ended) return false;
      this.#keep(tools);
      this.#omitted = source.omitted ?? null;
      this.#is("ready", this.#omitted);
      return true;
    } catch (error) {
      this.#is("unreachable", this.#wordsOf(error), outputOf(error));
      return false;
    }
  }

  /** @throws ConnectorError */
  async call(tool: KeptTool, input: JsonObject, context: SourceCall): Promise<ToolAnswer> {
    const { name } = this.stored;
    if (!this.#source || this.#ended) {
      throw new ConnectorError("unavailable", this.#error ?? `The connector ${name} was removed.`);
    }
    const { now, called } = this.#parts;
    const began = now();
    const ended = (outcome: "succeeded" | "failed") =>
      called.emit({
        workspaceId: this.stored.workspaceId,
        connector: name,
        outcome,
        durationMs: now() - began,
      });
    try {
      const answer = await this.#source.call(tool, input, context);
      if (this.#status !== "ready") this.#is("ready", this.#limit ?? this.#omitted);
      ended(answer.isError === true ? "failed" : "succeeded");
      return answer;
    } catch (error) {
      ended("failed");
      if (error instanceof ConnectorError) {
        if (UNHEALTHY.has(error.fault)) this.#is("unreachable", error.message, error.output);
        throw error;
      }
      throw new ConnectorError("invalid_answer", this.#wordsOf(error), { cause: error });
    }
  }

  /** Closes the source; in-flight calls fail. Never throws. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#parts.toolMemory.release(this.stored.id);
    await this.#source?.close();
  }

  /** @throws ConnectorError if there is no room for them; then the previous tools stay */
  #keep(tools: readonly KeptTool[]): void {
    const { workspaceId, id } = this.stored;
    const refusal = areSameTools(tools, this.#tools)
      ? undefined
      : this.#parts.toolMemory.hold(workspaceId, id, tools);
    this.#limit = refusal === undefined ? null : this.#noRoom(refusal);
    if (this.#limit !== null) throw new ConnectorError("too_large", this.#limit);
    this.#tools = tools;
  }

  #noRoom(refusal: string): string {
    return `There is no room for the tools of the connector ${this.stored.name}: it offers ${refusal}.`;
  }

  #is(status: ConnectorStatus, error: string | null, output?: string): void {
    const isOther = status !== this.#status;
    if (isOther) {
      this.#parts.log.info("a connector's status has changed", {
        workspace_id: this.stored.workspaceId,
        connector: this.stored.name,
        status,
        error,
      });
    }
    this.#status = status;
    // An upstream's text may be a slice of megabytes. Copy it, so those can be freed.
    this.#error = error === null ? null : ownText(error);
    this.#output = output === undefined ? undefined : ownText(output);
    if (isOther) this.#parts.statusChanged();
  }

  /** Never repeats an error that its source did not word: it may contain secrets. */
  #wordsOf(error: unknown): string {
    if (error instanceof ConnectorError) return error.message;
    this.#parts.log.error("a connector failed unexpectedly", { connector: this.stored.name, error });
    return `The connector ${this.stored.name} failed.`;
  }
}

function outputOf(error: unknown): string | undefined {
  return error instanceof ConnectorError ? error.output : undefined;
}
