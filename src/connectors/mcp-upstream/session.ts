import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  ErrorCode,
  McpError,
  type Progress,
  type Result,
  ResultSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { VERSION } from "../../base/version.ts";
import { ConnectorError } from "../source.ts";
import { Allowance } from "./allowance.ts";
import { Deadline, type RequestDeadline } from "./deadline.ts";
import { adding, cancelled, NotTaken, refusal, shown } from "./faults.ts";
import type { UpstreamLink } from "./link.ts";
import type { UpstreamParts } from "./parts.ts";

/** The SDK's own timers only use the system clock, so they are set beyond every deadline of Gatehouse. */
const NO_SDK_TIMEOUT_MS = 2_147_483_647;
/** Maximum number of log lines about unexpected messages per minute. */
const UNEXPECTED_A_MINUTE = 20;
/** The SDK's error for requests in flight when their link was closed. */
const CLOSED = `MCP error ${ErrorCode.ConnectionClosed}: Connection closed`;

export interface RequestOptions {
  readonly signal: AbortSignal;
  /** How long the upstream may be silent. Each progress notification restarts it. */
  readonly silenceMs: number;
  readonly totalMs: number;
  /** Whether the request may change something. If so, an error states when its outcome is unknown. */
  readonly acts: boolean;
  readonly progress?: (progress: Progress) => void;
}

/** One connection to an upstream after its handshake. It never reconnects: the `Connection` opens another. */
export class UpstreamSession {
  readonly #client: Client;
  readonly #link: UpstreamLink;
  readonly #parts: UpstreamParts;
  #out = 0;
  #retired = false;

  private constructor(client: Client, link: UpstreamLink, parts: UpstreamParts) {
    this.#client = client;
    this.#link = link;
    this.#parts = parts;
  }

  /**
   * Starts the link and performs the handshake.
   * @param changed called when the upstream reports that its tools have changed
   * @throws ConnectorError; the link is then closing
   */
  static async open(link: UpstreamLink, parts: UpstreamParts, changed: () => void): Promise<UpstreamSession> {
    const client = new Client(
      { name: "gatehouse", version: VERSION },
      // No roots, sampling, elicitation or tasks: the SDK answers requests for them with "Method not found".
      { capabilities: {}, jsonSchemaValidator: { getValidator: unusedValidator } },
    );
    client.setNotificationHandler(ToolListChangedNotificationSchema, changed);
    // Errors of a request reach its caller. Only late or unexpected messages are reported here.
    const allowance = new Allowance(parts.clock, UNEXPECTED_A_MINUTE, 60_000);
    client.onerror = (error) => {
      if (!allowance.take()) return;
      parts.log.debug("a connector sent something unexpected", {
        connector: parts.name,
        error: shown(error.message, parts),
      });
    };
    try {
      await handshake(client, link, parts);
    } catch (error) {
      void link.close();
      throw handshakeFault(error, link, parts);
    }
    return new UpstreamSession(client, link, parts);
  }

  get closed(): boolean {
    return this.#link.closed;
  }

  /** Whether the upstream declares the tools capability. */
  get hasTools(): boolean {
    return this.#client.getServerCapabilities()?.tools !== undefined;
  }

  /** Sends a request and waits for the answer. @throws ConnectorError, NotTaken */
  async request(method: string, params: Record<string, unknown>, options: RequestOptions): Promise<Result> {
    const { signal, progress } = options;
    if (signal.aborted) throw cancelled(this.#parts);
    // One per request: the SDK never removes its listener, and would cancel a request that has been answered.
    const giveUp = new AbortController();
    let expiry: RequestDeadline | undefined;
    const deadline = new Deadline(this.#parts.clock, options, (what) => {
      expiry = what;
      giveUp.abort("no answer in time");
    });
    const onAbort = (): void => giveUp.abort("cancelled by the caller");
    signal.addEventListener("abort", onAbort, { once: true });
    this.#out += 1;
    try {
      return await this.#client.request({ method, params }, ResultSchema, {
        signal: giveUp.signal,
        timeout: NO_SDK_TIMEOUT_MS,
        onprogress: (said) => {
          deadline.heard();
          progress?.(said);
        },
      });
    } catch (error) {
      if (expiry) throw this.#late(expiry, options);
      if (signal.aborted) throw cancelled(this.#parts);
      throw this.#fault(error, options);
    } finally {
      deadline.end();
      signal.removeEventListener("abort", onAbort);
      this.#out -= 1;
      if (this.#retired && this.#out === 0) void this.close();
    }
  }

  /** Accepts no new requests; in-flight ones may still be answered. */
  retire(): void {
    this.#retired = true;
    if (this.#out === 0) void this.close();
  }

  /** Resolves when everything has been released. Never throws. */
  close(): Promise<void> {
    return this.#link.close();
  }

  #late(expiry: RequestDeadline, { silenceMs, totalMs, acts }: RequestOptions): ConnectorError {
    const what =
      expiry === "silence"
        ? `sent neither an answer nor progress for ${silenceMs} ms`
        : `had not answered after ${totalMs} ms`;
    return unknowing(new ConnectorError("timeout", `The connector ${this.#parts.name} ${what}.`), acts);
  }

  #fault(error: unknown, { acts }: RequestOptions): ConnectorError | NotTaken {
    if (error instanceof McpError) {
      const { data } = error;
      if (data instanceof NotTaken) return data;
      if (data instanceof ConnectorError) return data.fault === "unreachable" ? unknowing(data, acts) : data;
      if (!this.#link.closed) return refusal(error, this.#parts);
    }
    if (this.#link.closed) return unknowing(lost(this.#link, this.#parts), acts);
    // The SDK's schema refused a result that is not an object.
    return new ConnectorError(
      "invalid_answer",
      `The connector ${this.#parts.name} sent an answer that is not MCP.`,
    );
  }
}

/** Outputs are passed on unchecked, so no schema is compiled for them. */
function unusedValidator(): never {
  throw new Error("outputs are not validated here");
}

async function handshake(client: Client, link: UpstreamLink, parts: UpstreamParts): Promise<void> {
  const { handshakeMs, name } = parts;
  let deadline: Deadline | undefined;
  const cut = new Promise<never>((_, reject) => {
    deadline = new Deadline(parts.clock, { silenceMs: handshakeMs, totalMs: handshakeMs }, () =>
      reject(
        new ConnectorError(
          "timeout",
          `The connector ${name} did not finish the handshake within ${handshakeMs} ms.`,
        ),
      ),
    );
  });
  cut.catch(() => {});
  try {
    await Promise.race([client.connect(link, { timeout: NO_SDK_TIMEOUT_MS }), cut]);
  } finally {
    deadline?.end();
  }
}

function handshakeFault(error: unknown, link: UpstreamLink, parts: UpstreamParts): ConnectorError {
  if (error instanceof ConnectorError) return link.fault ?? error;
  if (error instanceof NotTaken) return error.fault;
  if (error instanceof McpError) {
    if (error.data instanceof ConnectorError) return error.data;
    if (error.data instanceof NotTaken) return error.data.fault;
    // If the upstream refuses, the SDK closes the link itself. If the link was closed first, the SDK reports that.
    if (error.message !== CLOSED) return refusal(error, parts);
    return lost(link, parts);
  }
  if (link.fault) return link.fault;
  const why = error instanceof Error && error.name === "Error" ? shown(error.message, parts) : "";
  const text = `The connector ${parts.name} did not answer the handshake as MCP requires${why && `: ${why}`}`;
  return new ConnectorError("invalid_answer", text);
}

function lost(link: UpstreamLink, parts: UpstreamParts): ConnectorError {
  return (
    link.fault ??
    new ConnectorError("unreachable", `The connection to the connector ${parts.name} was closed.`)
  );
}

function unknowing(fault: ConnectorError, acts: boolean): ConnectorError {
  return acts ? adding(fault, "It is unknown whether the call was carried out.") : fault;
}
