import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  type MessageExtraInfo,
} from "@modelcontextprotocol/sdk/types.js";
import { type Clock, every } from "../base/clock.ts";
import type { AnswerPlace } from "./parts.ts";

const encoder = new TextEncoder();
const KEEP_ALIVE = encoder.encode(": keep-alive\n\n");
const KEEP_ALIVE_MS = 10_000;
/** Maximum bytes that a client has not read yet. A client that falls further behind is disconnected. */
const BACKLOG_BYTES = 32 * 1024 * 1024;
/** Bytes handed over at once. The rest of a message waits here, where it is counted. */
const CHUNK = 64 * 1024;

/** Takes a place for that many bytes. */
export type HoldAnswer = (bytes: number) => AnswerPlace;

/** A message that the client has not read yet. */
interface UnreadMessage {
  rest: Uint8Array;
  readonly place: AnswerPlace | null;
}

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
  readonly #hold: HoldAnswer;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** In order. */
  #unread: UnreadMessage[] = [];
  #unreadBytes = 0;
  #isClosing = false;
  #endKeepAlive = () => {};

  /**
   * `endpoint`: the absolute URL to which the client posts its messages. `hold`: takes a place for a long message until
   * the client has read it.
   */
  constructor(sessionId: string, endpoint: string, clock: Clock, hold: HoldAnswer) {
    this.sessionId = sessionId;
    this.#hold = hold;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
        this.#add(encoder.encode(`event: endpoint\ndata: ${endpoint}\n\n`));
      },
      pull: () => this.#handOver(),
      cancel: () => this.#end(),
    });
    this.response = new Response(body, {
      headers: {
        "content-type": "text/event-stream",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
      },
    });
    this.#endKeepAlive = every(clock, KEEP_ALIVE_MS, () => this.#add(KEEP_ALIVE));
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
    if (!this.#controller || this.#isClosing) throw new Error("The client has disconnected.");
    this.#add(encoder.encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`));
    if (this.#unreadBytes >= BACKLOG_BYTES) this.#end();
  }

  /** Whatever was sent can still be read. */
  async close(): Promise<void> {
    if (!this.#controller || this.#isClosing) return;
    this.#isClosing = true;
    this.#endKeepAlive();
    this.onclose?.();
    this.#handOver();
  }

  #add(bytes: Uint8Array): void {
    const place = bytes.length > CHUNK ? this.#hold(bytes.length) : null;
    this.#unread.push({ rest: bytes, place });
    this.#unreadBytes += bytes.length;
    // The memory was given to another answer: a stream with a gap would be misread.
    place?.endsBy(() => this.#end());
    this.#handOver();
  }

  /** Hands over as much as the stream accepts. */
  #handOver(): void {
    for (
      let [first] = this.#unread;
      first && (this.#controller?.desiredSize ?? 0) > 0;
      [first] = this.#unread
    ) {
      const chunk = first.rest.subarray(0, CHUNK);
      first.rest = first.rest.subarray(CHUNK);
      this.#unreadBytes -= chunk.length;
      if (first.rest.length === 0) this.#unread.shift()?.place?.release();
      this.#controller?.enqueue(chunk);
    }
    if (this.#isClosing && this.#unread.length === 0) this.#end();
  }

  /** Ends the stream, dropping whatever was not read. */
  #end(): void {
    const controller = this.#controller;
    if (!controller) return;
    this.#controller = null;
    for (const { place } of this.#unread.splice(0)) place?.release();
    this.#endKeepAlive();
    try {
      controller.close();
    } catch {
      // The client has already cancelled it.
    }
    if (!this.#isClosing) this.onclose?.();
    this.#isClosing = true;
  }
}
