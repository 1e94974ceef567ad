import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  ErrorCode,
  isJSONRPCNotification,
  isJSONRPCRequest,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import { VIA_META } from "../../base/via.ts";
import { ConnectorError } from "../source.ts";
import { closed, NotTaken } from "./faults.ts";
import type { UpstreamParts } from "./parts.ts";

/** Messages in a row that are no JSON-RPC until the connection is given up. */
const MOST_GARBAGE = 100;
/** Answers to the upstream's own requests that may be on their way at once; what it asks beyond that gets none. */
const MOST_REPLIES = 16;

/**
 * The SDK's transport, with an end for each request: where the upstream's answer cannot come any more, one is made up that
 * says why (a JSON-RPC error whose `data` is the ConnectorError or NotTaken itself, which no upstream can send). The SDK
 * alone would leave such a request waiting for its timeout, and its handlers in memory for ever where sending fails.
 */
export abstract class Link implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];
  protected readonly parts: UpstreamParts;
  readonly #open = new Set<number>();
  #replies = 0;
  #garbage = 0;
  #fault: ConnectorError | undefined;
  #closed = false;
  readonly #ended = Promise.withResolvers<void>();

  constructor(parts: UpstreamParts) {
    this.parts = parts;
  }

  /** Makes ready to send. @throws ConnectorError, and NotTaken */
  abstract start(): Promise<void>;
  /** Resolves when it is sent; for some transports when it is answered. @throws ConnectorError, and NotTaken */
  protected abstract write(message: JSONRPCMessage): Promise<void>;
  /** Lets go of process or connection. */
  protected abstract release(): Promise<void>;
  /** The SDK tells it after the handshake. */
  abstract setProtocolVersion(version: string): void;

  /** Why it ended, when it did so by itself. */
  get fault(): ConnectorError | undefined {
    return this.#fault;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Resolves when nothing is left of it. Never rejects. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.closed) throw this.#fault ?? closed(this.parts);
    if (isJSONRPCRequest(message)) return this.#request(message);
    if (isJSONRPCNotification(message)) {
      if (message.method === "notifications/cancelled") this.#settle(Number(message.params?.requestId));
      return this.write(message);
    }
    if (this.#replies >= MOST_REPLIES) return;
    this.#replies += 1;
    try {
      await this.write(message);
    } finally {
      this.#replies -= 1;
    }
  }

  async #request(request: JSONRPCRequest): Promise<void> {
    this.#open.add(Number(request.id));
    try {
      await this.write(this.#marked(request));
    } catch (error) {
      this.fail(request.id, this.asFault(error));
    }
  }

  /** The request with the Gatehouses that it has passed, this one last. The SDK makes the handshake's, which names none. */
  #marked(request: JSONRPCRequest): JSONRPCRequest {
    const meta = { [VIA_META]: [this.parts.instance], ...request.params?._meta };
    return { ...request, params: { ...request.params, _meta: meta } };
  }

  /** Ends it: what is out fails now, the promise resolves when nothing of it is left. */
  close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      void this.release()
        .catch((error) => {
          this.parts.log.error("a connector's connection did not end well", {
            connector: this.parts.name,
            error,
          });
        })
        .finally(this.#ended.resolve);
      this.onclose?.();
    }
    return this.ended;
  }

  /** It has ended by itself, or has to. */
  protected lose(fault: ConnectorError): void {
    if (this.closed) return;
    this.#fault = fault;
    void this.close();
  }

  protected received(message: JSONRPCMessage): void {
    if (this.closed) return;
    this.#garbage = 0;
    if ("method" in message) {
      this.onmessage?.(message);
      return;
    }
    // Late, or of nobody's asking.
    if (message.id === undefined || !this.waitsFor(message.id)) return;
    if ("result" in message && typeof message.result.task === "object") {
      this.fail(message.id, this.invalid("a task in place of the result, which was not asked for"));
      return;
    }
    this.#settle(Number(message.id));
    // The SDK hands notifications on one turn later than answers, and forgets who waits for progress with the answer.
    queueMicrotask(() => this.onmessage?.(message));
  }

  /** Something came that is no message. */
  protected garbled(): void {
    this.#garbage += 1;
    if (this.#garbage >= MOST_GARBAGE) {
      this.lose(this.invalid(`${MOST_GARBAGE} messages in a row that are not JSON-RPC`));
    }
  }

  /** Our own errors as they are; what the SDK throws means that an answer was not what the protocol says. */
  protected asFault(error: unknown): ConnectorError | NotTaken {
    if (error instanceof ConnectorError || error instanceof NotTaken) return error;
    return this.invalid("what is not JSON-RPC");
  }

  protected waitsFor(id: RequestId): boolean {
    return this.#open.has(Number(id));
  }

  /** Answers the request in the upstream's place; does nothing when it has an answer. */
  protected fail(id: RequestId, fault: ConnectorError | NotTaken): void {
    if (!this.#settle(Number(id))) return;
    const error = { code: ErrorCode.InternalError, message: fault.message, data: fault };
    queueMicrotask(() => this.onmessage?.({ jsonrpc: "2.0", id, error }));
  }

  /** The request has an answer, or nobody waits for one. */
  protected settled(_id: number): void {}

  /** @returns whether it was waited for */
  #settle(id: number): boolean {
    const waited = this.#open.delete(id);
    if (waited) this.settled(id);
    return waited;
  }

  protected invalid(what: string): ConnectorError {
    return new ConnectorError("invalid_answer", `The connector ${this.parts.name} sent ${what}.`);
  }
}
