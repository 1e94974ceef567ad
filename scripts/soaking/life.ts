import { type ReadEvent, readEvents } from "../../test/support/events.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON; null for an empty body, and for one that is no JSON. */
  readonly body: unknown;
  readonly text: string;
}

export interface CallOptions {
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the admin's. */
  readonly token?: string;
}

/** The server from one start to its end. */
export class Life {
  readonly url: string;
  readonly #admin: string;
  readonly #dropped: (what: string) => void;
  readonly #end = Promise.withResolvers<void>();
  #isOver = false;

  constructor(url: string, admin: string, dropped: (what: string) => void) {
    this.url = url;
    this.#admin = admin;
    this.#dropped = dropped;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** MUST come before the signal: from here on an answer that does not come is the signal's. */
  end(): void {
    this.#isOver = true;
    this.#end.resolve();
  }

  /** Waits so long, or until the end. */
  pause(ms: number): Promise<void> {
    return Promise.race([Bun.sleep(ms), this.#end.promise]);
  }

  /** @returns null when the end came before the answer: whether the call was heard is not known then */
  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer | null> {
    if (this.#isOver) return null;
    try {
      const response = await this.#fetch(method, path, options);
      const text = await response.text();
      const { status, headers } = response;
      const isJson = /json/.test(headers.get("content-type") ?? "") && text !== "";
      // Who drains refuses what is new.
      if (this.#isOver && status >= 500) return null;
      if (status >= 500) this.#dropped(`${method} ${path} was answered with ${status} ${text}`);
      return { status, headers, body: isJson ? JSON.parse(text) : null, text };
    } catch (error) {
      if (!this.#isOver) this.#dropped(`${method} ${path} was not answered: ${error}`);
      return null;
    }
  }

  /**
   * Opens a stream of events, and hands on each as it comes. `begun` is told of the headers first.
   * @returns once it has ended, by the server or the kill
   */
  async follow(
    method: "GET" | "POST",
    path: string,
    options: CallOptions,
    { begun, event }: { begun?(response: Response): void; event(event: ReadEvent): void },
  ): Promise<void> {
    if (this.#isOver) return;
    try {
      const response = await this.#fetch(method, path, options);
      begun?.(response);
      if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
        // A refusal, which is read to its end so that its connection can be used again.
        await response.text();
        return;
      }
      for await (const each of readEvents(response)) event(each);
    } catch (error) {
      if (!this.#isOver) this.#dropped(`the stream ${method} ${path} broke: ${error}`);
    }
  }

  #fetch(method: string, path: string, { body, headers, token }: CallOptions): Promise<Response> {
    return fetch(this.url + path, {
      method,
      headers: {
        authorization: `Bearer ${token ?? this.#admin}`,
        "content-type": "application/json",
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }
}
