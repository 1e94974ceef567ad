import type { JsonObject } from "../agents/index.ts";
import type { Log } from "../base/log.ts";
import type { Connector, ConnectorStatus, KnownConnector } from "./connector.ts";
import {
  ConnectorError,
  type ConnectorFault,
  type OfferedTool,
  type SourceCall,
  type ToolAnswer,
  type ToolSource,
} from "./source.ts";

/** Told of each call, for the metrics. */
export type CallWatch = (call: {
  readonly workspaceId: number;
  readonly connector: string;
  readonly outcome: "succeeded" | "failed";
  readonly durationMs: number;
}) => void;

export interface LiveParts {
  readonly log: Log;
  readonly now: () => number;
  readonly watch: CallWatch;
  /** Told that the connector's status is another. */
  statusChanged(): void;
}

/** What a connector said when it was asked for its tools last. */
export type Said = Pick<KnownConnector, "status" | "error" | "tools">;

/** Characters of one connector's tools, as JSON: all of them are kept in memory. */
const TOOLS_LIMIT = 8_000_000;

/** Faults that say something about the upstream as a whole, and not about one call. */
const UNHEALTHY: ReadonlySet<ConnectorFault> = new Set([
  "unreachable",
  "timeout",
  "unavailable",
  "forbidden_address",
]);

/** A connector at work: its source, what that offers, and how it is. */
export class LiveConnector {
  readonly stored: KnownConnector;
  readonly #source: ToolSource | null;
  readonly #parts: LiveParts;
  #status: ConnectorStatus;
  #error: string | null;
  #output: string | undefined;
  #tools: readonly OfferedTool[];
  #ended = false;
  #listing: Promise<unknown> = Promise.resolve();

  /** `source` null: it cannot be used, as `stored.error` says. */
  constructor(stored: KnownConnector, source: ToolSource | null, parts: LiveParts) {
    this.stored = stored;
    this.#source = source;
    this.#parts = parts;
    this.#status = stored.status;
    this.#error = stored.error;
    this.#tools = stored.tools;
  }

  get connector(): Connector {
    const { name, kind, scopes, authorisedBy, authorisedAt } = this.stored;
    const known = { name, kind, scopes, authorisedBy, authorisedAt };
    return { ...known, status: this.#status, error: this.#error, output: this.#output };
  }

  get tools(): readonly OfferedTool[] {
    return this.#tools;
  }

  get said(): Said {
    return { status: this.#status, error: this.#error, tools: this.#tools };
  }

  /**
   * Asks for the tools; what it offered before stays where it cannot be reached. One listing after the other. Never throws.
   * @returns whether it answered
   */
  list(signal: AbortSignal): Promise<boolean> {
    return this.#inTurn(() => this.#list(signal));
  }

  /** As `list`. @returns what it said just before it was asked, which an earlier listing may have changed, and then */
  listAnew(signal: AbortSignal): Promise<{ readonly before: Said; readonly now: Said }> {
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

  async #list(signal: AbortSignal): Promise<boolean> {
    if (!this.#source || this.#ended) return false;
    try {
      const tools = await this.#source.list(signal);
      if (JSON.stringify(tools).length > TOOLS_LIMIT) {
        const { name } = this.stored;
        throw new ConnectorError(
          "too_large",
          `The connector ${name}: its tools take over ${TOOLS_LIMIT} characters.`,
        );
      }
      this.#tools = tools;
      this.#is("ready", null);
      return true;
    } catch (error) {
      this.#is("unreachable", this.#wordsOf(error), outputOf(error));
      return false;
    }
  }

  /** @throws ConnectorError */
  async call(tool: OfferedTool, input: JsonObject, context: SourceCall): Promise<ToolAnswer> {
    const { name } = this.stored;
    if (!this.#source || this.#ended) {
      throw new ConnectorError("unavailable", this.#error ?? `The connector ${name} was removed.`);
    }
    const { now, watch } = this.#parts;
    const began = now();
    const ended = (outcome: "succeeded" | "failed") =>
      watch({
        workspaceId: this.stored.workspaceId,
        connector: name,
        outcome,
        durationMs: now() - began,
      });
    try {
      const answer = await this.#source.call(tool, input, context);
      if (this.#status !== "ready") this.#is("ready", null);
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

  /** Ends what it holds open; calls that are out fail. Never throws. */
  async end(): Promise<void> {
    this.#ended = true;
    await this.#source?.close();
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
    this.#error = error;
    this.#output = output;
    if (isOther) this.#parts.statusChanged();
  }

  /** Of an error that its source did not word, nothing is repeated: it may hold what must not be shown. */
  #wordsOf(error: unknown): string {
    if (error instanceof ConnectorError) return error.message;
    this.#parts.log.error("a connector failed here", { connector: this.stored.name, error });
    return `The connector ${this.stored.name} failed.`;
  }
}

function outputOf(error: unknown): string | undefined {
  return error instanceof ConnectorError ? error.output : undefined;
}
