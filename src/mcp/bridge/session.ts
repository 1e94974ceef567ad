import { createParser, type EventSourceMessage } from "eventsource-parser";
import { RPC } from "../rpc-error.ts";
import { type BridgeMessage, readMessages } from "./message.ts";
import { BridgeError, refusalOf } from "./refusal.ts";

export interface DoorAddress {
  /** The URL of the MCP endpoint. */
  readonly url: URL;
  readonly token: string;
  /** Sends a request over the network or within this process. */
  readonly fetch: (url: URL, init: RequestInit) => Promise<Response>;
}

export interface DoorEvent {
  /** The id from which a broken stream can be resumed. */
  readonly id: string | undefined;
  readonly messages: readonly BridgeMessage[];
}

/** Maximum characters of one event, more than any answer that a connector may give. */
const EVENT_CHARACTERS = 64 * 1024 * 1024;
/** How long the server may take to end the session. */
const GOODBYE_MS = 2_000;

/** A session with the server over Streamable HTTP (specification 2025-11-25, "Transports"). */
export class DoorSession {
  readonly #address: DoorAddress;
  /** Aborts pending requests when the session is abandoned. */
  readonly #ending = new AbortController();
  #id: string | null = null;
  /** The negotiated protocol version, sent as a header of all later requests. */
  version: string | null = null;

  constructor(address: DoorAddress) {
    this.#address = address;
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Whether the server has opened the session. */
  get isOpen(): boolean {
    return this.#id !== null && !this.signal.aborted;
  }

  /**
   * Sends a message.
   * @returns the server's response, which is successful
   * @throws BridgeError, SessionLost
   */
  async post(message: BridgeMessage, signal: AbortSignal): Promise<Response> {
    const response = await this.#ask(
      { method: "POST", body: message.text },
      { "content-type": "application/json", accept: "application/json, text/event-stream" },
      signal,
    );
    this.#id = response.headers.get("mcp-session-id") ?? this.#id;
    return response;
  }

  /**
   * Opens the stream of the server's unsolicited messages, or resumes a stream.
   * @throws BridgeError, SessionLost
   */
  listen(lastEventId: string | undefined, signal: AbortSignal): Promise<Response> {
    const resumed = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
    return this.#ask({ method: "GET" }, { accept: "text/event-stream", ...resumed }, signal);
  }

  /** Ends the session here and, if possible, on the server. Never throws. */
  async end(): Promise<void> {
    const isOpen = this.isOpen;
    this.#ending.abort();
    if (!isOpen) return;
    try {
      const goodbye = AbortSignal.timeout(GOODBYE_MS);
      const { fetch, url } = this.#address;
      const response = await fetch(url, { method: "DELETE", headers: this.#headers({}), signal: goodbye });
      await response.body?.cancel();
    } catch {
      // The server is gone, and the session with it, or it will remove the idle session.
    }
  }

  async #ask(init: RequestInit, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const inSession = this.isOpen;
    const either = AbortSignal.any([signal, this.signal]);
    // Checked explicitly, because requests within this process do not observe the signal before they start.
    if (either.aborted)
      throw new BridgeError(RPC.unavailable, "The request was abandoned before it was sent.");
    let response: Response;
    try {
      const { fetch, url } = this.#address;
      // A redirect is not followed, because its target would get the token.
      response = await fetch(url, {
        ...init,
        headers: this.#headers(headers),
        signal: either,
        redirect: "manual",
      });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new BridgeError(
        RPC.unavailable,
        `The server ${this.#address.url.origin} cannot be reached: ${why}`,
      );
    }
    if (!response.ok) throw await refusalOf(response, inSession);
    return response;
  }

  #headers(others: Record<string, string>): Record<string, string> {
    return {
      authorization: `Bearer ${this.#address.token}`,
      ...(this.#id === null ? {} : { "mcp-session-id": this.#id }),
      ...(this.version === null ? {} : { "mcp-protocol-version": this.version }),
      ...others,
    };
  }
}

/**
 * The events of a response: a single one for JSON, each as it arrives for a stream.
 * @throws BridgeError
 */
export async function* eventsOf(response: Response, signal: AbortSignal): AsyncGenerator<DoorEvent, void> {
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/json")) {
    yield { id: undefined, messages: messagesOf(await response.text()) };
    return;
  }
  if (!type.startsWith("text/event-stream") || !response.body) {
    await response.body?.cancel();
    throw new BridgeError(RPC.unavailable, "The server's answer is not an MCP message.");
  }
  const reader = response.body.getReader();
  // A response made within this process is not cancelled by the signal.
  const leave = (): void => void reader.cancel().catch(() => {}); // it has already ended
  signal.addEventListener("abort", leave, { once: true });
  try {
    const waiting: EventSourceMessage[] = [];
    let tooLong = false;
    const parser = createParser({
      onEvent: (event) => waiting.push(event),
      onError: ({ type }) => {
        tooLong ||= type === "max-buffer-size-exceeded";
      },
      maxBufferSize: EVENT_CHARACTERS,
    });
    const decoder = new TextDecoder();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      parser.feed(decoder.decode(part.value, { stream: true }));
      if (tooLong)
        throw new BridgeError(RPC.internal, `An answer has more than ${EVENT_CHARACTERS} characters.`);
      for (const { id, data } of waiting.splice(0)) {
        yield { id, messages: data === "" ? [] : messagesOf(data) };
      }
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

function messagesOf(text: string): readonly BridgeMessage[] {
  const messages = readMessages(text);
  if (!messages) throw new BridgeError(RPC.unavailable, "The server's answer is not an MCP message.");
  return messages;
}
