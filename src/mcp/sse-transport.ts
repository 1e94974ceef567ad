import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  type MessageExtraInfo,
} from "@modelcontextprotocol/sdk/types.js";
import { type Clock, every } from "../base/clock.ts";

const encoder = new TextEncoder();
const KEEP_ALIVE = encoder.encode(": keep-alive\n\n");
const KEEP_ALIVE_MS = 10_000;
/** Maximum bytes that a client has not read yet. A client that falls further behind is disconnected. */
const BACKLOG_BYTES = 32 * 1024 * 1024;

/**
 * The server side of HTTP+SSE (specification 2024-11-05): a stream of answers, and an endpoint that takes messages.
 * The SDK's implementation needs Node's response object.
 */
export class SseTransport implements Transport {
  readonly sessionId: string;
  readonly response: Response;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: <T extends JSONRPCMessage>(message: T, extra?: MessageExtraInfo) => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #endKeepAlive = () => {};

  /** `endpoint`: the absolute URL to which the client posts its messages. */
  constructor(sessionId: string, endpoint: string, clock: Clock) {
    this.sessionId = sessionId;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
          controller.enqueue(encoder.encode(`event: endpoint\ndata: ${endpoint}\n\n`));
        },
        cancel: () => void this.close(),
      },
      { highWaterMark: BACKLOG_BYTES, size: (chunk) => chunk?.length ?? 0 },
    );
    this.response = new Response(body, {
      headers: {
        "content-type": "text/event-stream",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
      },
    });
    this.#endKeepAlive = every(clock, KEEP_ALIVE_MS, () => this.#controller?.enqueue(KEEP_ALIVE));
  }

  async start(): Promise<void> {}

  /**
   * Takes a message that the client posted.
   * @throws Error if it is not a valid message
   */
  receive(message: unknown, extra: MessageExtraInfo): void {
    this.onmessage?.(JSONRPCMessageSchema.parse(message), extra);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (!this.#controller) throw new Error("The client has disconnected.");
    this.#controller.enqueue(encoder.encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`));
    if ((this.#controller.desiredSize ?? 0) < 0) await this.close();
  }

  async close(): Promise<void> {
    const controller = this.#controller;
    if (!controller) return;
    this.#controller = null;
    this.#endKeepAlive();
    try {
      controller.close();
    } catch {
      // The client has already cancelled it.
    }
    this.onclose?.();
  }
}
