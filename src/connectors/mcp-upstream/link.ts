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

/** Number of consecutive messages that are not JSON-RPC after which the connection is closed. */
const MOST_GARBAGE = 100;
/** Maximum number of in-flight answers to the upstream's own requests. Its requests beyond that get no answer. */
const MOST_REPLIES = 16;

/**
 * Wraps the SDK's transport so that every request ends. If the upstream's answer cannot arrive any more, the link
 * answers instead, with a JSON-RPC error whose `data` is the ConnectorError or NotTaken itself, which no upstream can
 * send. The SDK by itself would wait for the request's timeout, and would keep its handlers in memory forever if
 * sending fails.
 */
export abstract class UpstreamLink implements Transport {
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

  /** Prepares the link for sending. @throws ConnectorError, NotTaken */
  abstract start(): Promise<void>;
  /** Resolves when the message is sent; for some transports, when it is answered. @throws ConnectorError, NotTaken */
  protected abstract write(message: JSONRPCMessage): Promise<void>;
  /** Releases the process or connection. */
  protected abstract release(): Promise<void>;
  /** Called by the SDK after the handshake. */
  abstract setProtocolVersion(version: string): void;

  /** Why the link ended, unless it was closed. */
  get fault(): ConnectorError | undefined {
    return this.#fault;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Resolves when everything has been released. Never rejects. */
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

  /**
   * Adds the Gatehouse instances that the request has passed, this one last. The SDK creates the handshake's request
   * without any.
   */
  #marked(request: JSONRPCRequest): JSONRPCRequest {
    const meta = { [VIA_META]: [this.parts.instance], ...request.params?._meta };
    return { ...request, params: { ...request.params, _meta: meta } };
  }

  /** Closes the link: in-flight requests fail now. Resolves when everything has been released. */
  close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      void this.release()
        .catch((error) => {
          this.parts.log.error("a connector's connection cannot be closed cleanly", {
            connector: this.parts.name,
            error,
          });
        })
        .finally(this.#ended.resolve);
      this.onclose?.();
    }
    return this.ended;
  }

  /** Ends a link that has failed or must not be used any more. */
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
    // A late answer, or one that nobody requested.
    if (message.id === undefined || !this.waitsFor(message.id)) return;
    if ("result" in message && typeof message.result.task === "object") {
      this.fail(message.id, this.invalid("a task instead of the result, although none was requested"));
      return;
    }
    this.#settle(Number(message.id));
    this.parts.inflow.refund();
    // The SDK delivers notifications one turn later than answers, and drops a request's progress listener with its
    // answer.
    queueMicrotask(() => this.onmessage?.(message));
  }

  /** Counts data that is not a message. */
  protected garbled(): void {
    this.#garbage += 1;
    if (this.#garbage >= MOST_GARBAGE) {
      this.lose(this.invalid(`${MOST_GARBAGE} messages in a row that are not JSON-RPC`));
    }
  }

  /** Gatehouse's own errors are kept. If the SDK throws, the answer violated the protocol. */
  protected asFault(error: unknown): ConnectorError | NotTaken {
    if (error instanceof ConnectorError || error instanceof NotTaken) return error;
    return this.invalid("an answer that is not JSON-RPC");
  }

  protected waitsFor(id: RequestId): boolean {
    return this.#open.has(Number(id));
  }

  /** Answers the request in the upstream's place. No effect if it is already answered. */
  protected fail(id: RequestId, fault: ConnectorError | NotTaken): void {
    if (!this.#settle(Number(id))) return;
    const error = { code: ErrorCode.InternalError, message: fault.message, data: fault };
    queueMicrotask(() => this.onmessage?.({ jsonrpc: "2.0", id, error }));
  }

  /** Called when a request was answered, or nobody waits for it any more. */
  protected settled(_id: number): void {}

  /** @returns whether the request was waiting */
  #settle(id: number): boolean {
    const waited = this.#open.delete(id);
    if (waited) this.settled(id);
    return waited;
  }

  protected invalid(what: string): ConnectorError {
    return new ConnectorError("invalid_answer", `The connector ${this.parts.name} sent ${what}.`);
  }
}
