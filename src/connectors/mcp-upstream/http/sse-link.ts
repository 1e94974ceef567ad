import { AsyncLocalStorage } from "node:async_hooks";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { isJSONRPCRequest, type JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import type { HttpTransport } from "../../definition/definition.ts";
import { ConnectorError } from "../../source.ts";
import { closed, type NotTaken } from "../faults.ts";
import { UpstreamLink } from "../link.ts";
import type { UpstreamParts } from "../parts.ts";
import { ACCEPT_MS, ask, capMessages, isPastCap, isUnreadable } from "./ask.ts";
import { isEndMarker, markEnd } from "./end-marker.ts";
import { refusedStatus } from "./refused.ts";
import { Semaphore } from "./semaphore.ts";

/**
 * The older HTTP+SSE (specification 2024-11-05), using the SDK's transport: one stream for all answers. If the stream
 * ends, the connection ends. The SDK would reopen it and continue in a session that the upstream does not know.
 */
export class SseLink extends UpstreamLink {
  readonly #inner: SSEClientTransport;
  readonly #released = Promise.withResolvers<never>();
  /** Aborts the POST that the SDK is currently sending. */
  readonly #current = new AsyncLocalStorage<AbortSignal>();
  /** By request id, for requests that wait for their answer. */
  readonly #posts = new Map<number, AbortController>();
  readonly #telling: Semaphore;
  #opened = false;
  /** The most recent error. The SDK would replace its text. */
  #last: ConnectorError | NotTaken | undefined;

  constructor(transport: HttpTransport, parts: UpstreamParts) {
    super(parts);
    this.#telling = new Semaphore(parts);
    this.#inner = new SSEClientTransport(new URL(transport.url), {
      requestInit: { headers: { ...transport.headers } },
      fetch: (url, init) => this.#fetch(url, init ?? {}),
    });
    this.#released.promise.catch(() => {});
    this.#inner.onmessage = (message) => (isEndMarker(message) ? this.#ended() : this.received(message));
    this.#inner.onerror = (error) => {
      if (isUnreadable(error)) this.garbled();
    };
  }

  async start(): Promise<void> {
    try {
      // If the upstream never names its endpoint, this waits until the connection is closed.
      await Promise.race([this.#inner.start(), this.#released.promise]);
    } catch {
      throw this.#last ?? this.invalid("no event stream with its endpoint");
    }
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  /** A request may be accepted as late as it is answered. Any other message must be accepted within `ACCEPT_MS`. */
  protected async write(message: JSONRPCMessage): Promise<void> {
    const post = new AbortController();
    const send = (): Promise<void> => this.#current.run(post.signal, () => this.#inner.send(message));
    if (isJSONRPCRequest(message)) {
      this.#posts.set(Number(message.id), post);
      await send();
      return;
    }
    await this.#telling.run(async () => {
      const stop = this.parts.clock.after(ACCEPT_MS, () => post.abort());
      try {
        await send();
      } finally {
        stop();
      }
    });
  }

  protected override settled(id: number): void {
    this.#posts.get(id)?.abort();
    this.#posts.delete(id);
  }

  protected async release(): Promise<void> {
    this.#released.reject(closed(this.parts));
    await this.#inner.close();
  }

  async #fetch(url: string | URL, init: RequestInit): Promise<Response> {
    try {
      return init.method === "POST" ? await this.#post(url, init) : await this.#open(url, init);
    } catch (error) {
      this.#last = this.asFault(error);
      throw this.#last;
    }
  }

  async #open(url: string | URL, init: RequestInit): Promise<Response> {
    if (this.#opened) throw closed(this.parts);
    this.#opened = true;
    const response = await ask(url, { ...init, lasts: true }, this.parts);
    if (!response.ok) throw await refusedStatus(response, false, this.parts);
    return markEnd(capMessages(response, this.parts), (error) => {
      if (isPastCap(error)) this.lose(error);
      return !isPastCap(error);
    });
  }

  async #post(url: string | URL, init: RequestInit): Promise<Response> {
    if (this.closed) throw closed(this.parts);
    const signals = [init.signal, this.#current.getStore()].filter((each) => each instanceof AbortSignal);
    const response = await ask(url, { ...init, signal: AbortSignal.any(signals) }, this.parts);
    if (!response.ok) throw await refusedStatus(response, true, this.parts);
    return response;
  }

  #ended(): void {
    const ended = new ConnectorError(
      "unreachable",
      `The connector ${this.parts.name} ended its event stream.`,
    );
    this.lose(ended);
  }
}
