import { type Clock, timestamp } from "../base/clock.ts";
import type { Ids } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { VERSION } from "../base/version.ts";

/** Something that happened, for a program of the operator's. */
export interface Notice {
  /** Such as `limit.exceeded`. */
  readonly type: string;
  readonly data: object;
  /** One that still waits with the same word is replaced by this: only the newest says anything. */
  readonly replaces?: string;
}

export interface WebhookParts {
  /** May carry credentials: shown nowhere but for its origin. */
  readonly url: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** Notices that wait; past that the newest are dropped, and the log says so. */
const WAITING_LIMIT = 256;
const TIMEOUT_MS = 10_000;
/** Pauses before it is tried again. */
const RETRY_MS = [1_000, 5_000, 30_000];
/** How long the last notices are waited for when the process ends. */
const CLOSE_MS = 2_000;

/**
 * Posts notices to the configured URL, one after another, as `{"type","timestamp","data"}`. `webhook-id` stays the same where
 * one is sent again, so that a receiver can tell.
 */
export class Webhook {
  readonly #parts: WebhookParts;
  readonly #origin: string;
  #waiting: { readonly notice: Notice; readonly at: number; readonly id: string }[] = [];
  #sending: Promise<void> | null = null;
  readonly #closing = new AbortController();
  #isFull = false;

  constructor(parts: WebhookParts) {
    this.#parts = parts;
    this.#origin = new URL(parts.url).origin;
  }

  post(notice: Notice): void {
    if (this.#closing.signal.aborted) return;
    const { clock, ids, log } = this.#parts;
    const waiting = { notice, at: clock.now(), id: ids("msg") };
    if (notice.replaces !== undefined) {
      this.#waiting = this.#waiting.filter((other) => other.notice.replaces !== notice.replaces);
    }
    if (this.#waiting.length >= WAITING_LIMIT) {
      if (!this.#isFull)
        log.error("too many notices wait for the webhook: some are dropped", { webhook: this.#origin });
      this.#isFull = true;
      return;
    }
    this.#isFull = false;
    this.#waiting.push(waiting);
    this.#sending ??= this.#send();
  }

  /** Resolves when all is sent, or after two seconds with what can't be. */
  async close(): Promise<void> {
    const cancel = this.#parts.clock.after(CLOSE_MS, () => this.#closing.abort());
    while (this.#sending) await this.#sending;
    cancel();
    this.#closing.abort();
  }

  async #send(): Promise<void> {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      const { notice, at, id } = next;
      const body = JSON.stringify({ type: notice.type, timestamp: timestamp(at), data: notice.data });
      const problem = await this.#deliver(id, at, body);
      if (problem === null) continue;
      this.#parts.log.error("a notice could not be delivered", {
        webhook: this.#origin,
        type: notice.type,
        problem,
      });
    }
    // In the same turn in which nothing waited any more: what comes after it begins anew.
    this.#sending = null;
  }

  /** @returns what is wrong, after the last try; null where it was taken */
  async #deliver(id: string, at: number, body: string): Promise<string | null> {
    let problem: string | null = null;
    for (let attempt = 0; attempt <= RETRY_MS.length && !this.#closing.signal.aborted; attempt++) {
      problem = await this.#attempt(id, at, body);
      if (problem === null) return null;
      const wait = RETRY_MS[attempt];
      if (wait !== undefined) await this.#pause(wait);
    }
    return problem ?? "the process ends";
  }

  async #attempt(id: string, at: number, body: string): Promise<string | null> {
    const control = new AbortController();
    const abort = () => control.abort();
    const cancel = this.#parts.clock.after(TIMEOUT_MS, abort);
    this.#closing.signal.addEventListener("abort", abort, { once: true });
    try {
      const response = await fetch(this.#parts.url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "user-agent": `gatehouse/${VERSION}`,
          "webhook-id": id,
          "webhook-timestamp": String(Math.floor(at / 1000)),
        },
        body,
        redirect: "manual",
        signal: control.signal,
      });
      await response.body?.cancel();
      return response.ok ? null : `it answered ${response.status}`;
    } catch (error) {
      // Its message may hold the URL.
      return control.signal.aborted ? "it did not answer in time" : `it cannot be reached (${codeOf(error)})`;
    } finally {
      cancel();
      this.#closing.signal.removeEventListener("abort", abort);
    }
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#closing;
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        signal.removeEventListener("abort", end);
        resolve();
      };
      const cancel = this.#parts.clock.after(ms, end);
      signal.addEventListener("abort", end, { once: true });
      if (signal.aborted) end();
    });
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
