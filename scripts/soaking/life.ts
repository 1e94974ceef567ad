import { type ReadEvent, readEvents } from "../../test/support/events.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON; null if the body is empty or not JSON. */
  readonly body: unknown;
  readonly text: string;
}

export interface CallOptions {
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the admin's token. */
  readonly token?: string;
}

/** Where a call goes. */
export interface Route {
  readonly url: string;
  /** Whether a missing answer is due to the server's end or to a fault. Asked when the answer is missing. */
  mayFail(): boolean;
  readonly signal?: AbortSignal;
}

/** The server from one start to its end. */
export class Life {
  readonly #url: string;
  readonly #admin: string;
  readonly #dropped: (what: string) => void;
  readonly #end = Promise.withResolvers<void>();
  #isOver = false;

  constructor(url: string, admin: string, dropped: (what: string) => void) {
    this.#url = url;
    this.#admin = admin;
    this.#dropped = dropped;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** MUST be called before the signal: from here on, a missing answer is attributed to the signal. */
  end(): void {
    this.#isOver = true;
    this.#end.resolve();
  }

  protected route(_path: string): Route {
    return { url: this.#url, mayFail: () => this.#isOver };
  }

  /** Waits this long, or until the end. */
  pause(ms: number): Promise<void> {
    return Promise.race([Bun.sleep(ms), this.#end.promise]);
  }

  /** @returns null if the end came before the answer; then it is unknown whether the server received the call */
  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer | null> {
    if (this.#isOver) return null;
    const route = this.route(path);
    try {
      const response = await this.#fetch(route, method, path, options);
      const text = await response.text();
      const { status, headers } = response;
      const isJson = /json/.test(headers.get("content-type") ?? "") && text !== "";
      // A draining server refuses new work.
      if (route.mayFail() && status >= 500) return null;
      if (status >= 500) this.#dropped(`${method} ${path} was answered with ${status} ${text}`);
      return { status, headers, body: isJson ? JSON.parse(text) : null, text };
    } catch (error) {
      if (!route.mayFail()) this.#dropped(`${method} ${path} was not answered: ${error}`);
      return null;
    }
  }

  /**
   * Opens a stream of events and passes each on as it arrives. `begun` first gets the response with its headers.
   * @returns when the stream has ended, by the server or by the kill; true if it may have ended too early
   */
  async follow(
    method: "GET" | "POST",
    path: string,
    options: CallOptions,
    { begun, event }: { begun?(response: Response): void; event(event: ReadEvent): void },
  ): Promise<boolean> {
    if (this.#isOver) return true;
    const route = this.route(path);
    try {
      const response = await this.#fetch(route, method, path, options);
      begun?.(response);
      if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
        // A refusal, read to its end so that its connection can be reused.
        await response.text();
        return route.mayFail();
      }
      for await (const each of readEvents(response)) event(each);
    } catch (error) {
      if (!route.mayFail()) this.#dropped(`the stream ${method} ${path} broke: ${error}`);
    }
    return route.mayFail();
  }

  #fetch(
    { url, signal }: Route,
    method: string,
    path: string,
    { body, headers, token }: CallOptions,
  ): Promise<Response> {
    return fetch(url + path, {
      method,
      ...(signal && { signal }),
      headers: {
        authorization: `Bearer ${token ?? this.#admin}`,
        "content-type": "application/json",
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }
}
