import { AsyncLocalStorage } from "node:async_hooks";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { isJSONRPCRequest, type JSONRPCMessage, type RequestId } from "@modelcontextprotocol/sdk/types.js";
import { pause } from "../../../base/clock.ts";
import type { HttpTransport } from "../../definition/definition.ts";
import type { OutboundInit } from "../../outbound/fetch.ts";
import { ConnectorError } from "../../source.ts";
import { closed, isUnavailable, NotTaken } from "../faults.ts";
import { UpstreamLink } from "../link.ts";
import type { UpstreamParts } from "../parts.ts";
import { ACCEPT_MS, ask, capMessages, isPastCap, isUnreadable } from "./ask.ts";
import { isEndMarker, markEnd } from "./end-marker.ts";
import { ListenBackoff } from "./listening.ts";
import { refusedStatus } from "./refused.ts";
import { Semaphore } from "./semaphore.ts";

/** How long a stream may stay open after its answer has arrived. */
const LINGER_MS = 1_000;
/** How long the upstream gets to end its session. */
const GOODBYE_MS = 2_000;
/** The interval between attempts to listen while connectors have too many streams open. */
const NO_ROOM_MS = 30_000;

/** One request and the streams that may carry its answer. */
interface Exchange {
  readonly id: RequestId;
  readonly abort: AbortController;
  /** Whether its answer comes as a stream, which the end marker closes. */
  streams: boolean;
  /** Whether an event with an id has arrived: if the stream then ends early, the SDK requests the rest. */
  resumable: boolean;
  garbled: boolean;
  stopLingering: () => void;
}

/** Streamable HTTP (specification 2025-11-25), using the SDK's transport. Every request and every stream ends. */
export class StreamableLink extends UpstreamLink {
  readonly #inner: StreamableHTTPClientTransport;
  /** The exchange that the SDK is working on, even when it later requests the rest of an answer. */
  readonly #current = new AsyncLocalStorage<Exchange | undefined>();
  readonly #exchanges = new Map<number, Exchange>();
  readonly #listening: ListenBackoff;
  readonly #telling: Semaphore;
  readonly #what: string;
  /** Whether the session is gone, so that it need not be ended. */
  #sessionLost = false;

  constructor(transport: HttpTransport, parts: UpstreamParts) {
    super(parts);
    this.#what = `The connector ${parts.name}`;
    this.#listening = new ListenBackoff(parts.clock);
    this.#telling = new Semaphore(parts);
    this.#inner = new StreamableHTTPClientTransport(new URL(transport.url), {
      requestInit: { headers: { ...transport.headers } },
      fetch: (url, init) => this.#fetch(url, init ?? {}),
    });
    this.#inner.onmessage = (message) =>
      isEndMarker(message) ? this.#streamEnded() : this.received(message);
    this.#inner.onerror = (error) => this.#erred(error);
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  protected async write(message: JSONRPCMessage): Promise<void> {
    if (!isJSONRPCRequest(message)) {
      await this.#current.run(undefined, () => this.#inner.send(message));
      return;
    }
    const { id } = message;
    const exchange: Exchange = {
      id,
      abort: new AbortController(),
      streams: false,
      resumable: false,
      garbled: false,
      stopLingering: () => {},
    };
    this.#exchanges.set(Number(id), exchange);
    const onresumptiontoken = (): void => {
      exchange.resumable = true;
    };
    try {
      await this.#current.run(exchange, () => this.#inner.send(message, { onresumptiontoken }));
    } catch (error) {
      if (error instanceof NotTaken) this.#sessionLost = true;
      throw error;
    }
    if (exchange.streams) return;
    exchange.stopLingering();
    this.fail(id, this.invalid("something other than the answer"));
  }

  protected override settled(id: number): void {
    const exchange = this.#exchanges.get(id);
    this.#exchanges.delete(id);
    if (exchange) exchange.stopLingering = this.parts.clock.after(LINGER_MS, () => exchange.abort.abort());
  }

  protected async release(): Promise<void> {
    for (const { abort } of this.#exchanges.values()) abort.abort();
    if (this.#inner.sessionId !== undefined && !this.#sessionLost) {
      let stop = () => {};
      const enough = new Promise<void>((resolve) => {
        stop = this.parts.clock.after(GOODBYE_MS, resolve);
      });
      const goodbye = this.#current.run(undefined, () => this.#inner.terminateSession());
      // If the upstream does not accept it, the session will expire there.
      await Promise.race([goodbye.catch(() => {}), enough]);
      stop();
    }
    await this.#inner.close();
  }

  async #fetch(url: string | URL, init: RequestInit): Promise<Response> {
    const exchange = this.#current.getStore();
    const over = this.closed ? init.method !== "DELETE" : exchange && !this.waitsFor(exchange.id);
    if (over) throw closed(this.parts);
    const signals = [init.signal, exchange?.abort.signal].filter((signal) => signal instanceof AbortSignal);
    const signal = AbortSignal.any(signals);
    const inSession = new Headers(init.headers).has("mcp-session-id");
    if (init.method === "GET") return this.#listen(url, { ...init, signal }, inSession, exchange);
    if (!exchange) {
      const telling = { ...init, signal };
      // The connection is closing, so this does not wait for a place.
      if (init.method === "DELETE") return this.#tell(url, telling, inSession);
      return this.#telling.run(() => this.#tell(url, telling, inSession));
    }
    const response = await ask(url, { ...init, signal }, this.parts);
    if (!response.ok) throw await refusedStatus(response, inSession, this.parts);
    const type = response.headers.get("content-type") ?? "";
    const capped = capMessages(response, this.parts);
    if (!type.includes("text/event-stream")) return capped;
    exchange.streams = true;
    return this.#watched(capped, exchange);
  }

  /**
   * Sends a message that needs no answer: a notification, an answer to the upstream's own request, or the end of the
   * session.
   */
  async #tell(
    url: string | URL,
    init: RequestInit & { readonly signal: AbortSignal },
    inSession: boolean,
  ): Promise<Response> {
    const late = new AbortController();
    const stop = this.parts.clock.after(ACCEPT_MS, () => late.abort());
    try {
      const signal = AbortSignal.any([init.signal, late.signal]);
      const response = await ask(url, { ...init, signal }, this.parts);
      if (init.method === "DELETE" || response.ok) return response;
      throw await refusedStatus(response, inSession, this.parts);
    } finally {
      stop();
    }
  }

  /** Opens the stream for messages that the upstream sends on its own, or for the rest of an answer. */
  async #listen(
    url: string | URL,
    init: RequestInit & { readonly signal: AbortSignal },
    inSession: boolean,
    exchange: Exchange | undefined,
  ): Promise<Response> {
    const waitMs = this.#listening.waitMs(exchange !== undefined);
    if (waitMs > 0) await pause(waitMs, this.parts.clock, init.signal);
    try {
      const response = exchange ? await ask(url, init, this.parts) : await this.#openStream(url, init);
      // 405: the upstream sends no messages on its own.
      if (response.status === 405 && !exchange) return response;
      if (!response.ok) throw await refusedStatus(response, inSession, this.parts);
      const capped = capMessages(response, this.parts);
      return exchange ? this.#watched(capped, exchange) : capped;
    } catch (error) {
      if (exchange) this.fail(exchange.id, this.#brokenOff());
      throw error;
    }
  }

  /**
   * Waits until connectors may open another stream. Messages that the upstream sends in the meantime are lost; its
   * answers are not.
   */
  async #openStream(
    url: string | URL,
    init: RequestInit & { readonly signal: AbortSignal },
  ): Promise<Response> {
    const lasting: OutboundInit = { ...init, lasts: true };
    for (;;) {
      try {
        return await ask(url, lasting, this.parts);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        await pause(NO_ROOM_MS, this.parts.clock, init.signal);
      }
    }
  }

  #watched(response: Response, { id }: Exchange): Response {
    return markEnd(response, (error) => {
      // At the marker, the SDK would parse the part of the refused message that it has read.
      if (isPastCap(error)) this.fail(id, error);
      return !isPastCap(error);
    });
  }

  #streamEnded(): void {
    const exchange = this.#current.getStore();
    if (!exchange) return;
    exchange.stopLingering();
    if (!this.waitsFor(exchange.id)) return;
    const { garbled, resumable, id } = exchange;
    if (resumable) return;
    if (garbled) this.fail(id, this.invalid("a stream without an answer"));
    else this.fail(id, this.#brokenOff());
  }

  #brokenOff(): ConnectorError {
    return new ConnectorError("unreachable", `${this.#what} ended the connection before it answered.`);
  }

  #erred(error: Error): void {
    if (!isUnreadable(error)) return;
    const exchange = this.#current.getStore();
    if (exchange) exchange.garbled = true;
    this.garbled();
  }
}
