import type { McpDefinition } from "../definition/definition.ts";
import { ConnectorError } from "../source.ts";
import { Breaker, type Permit } from "./breaker.ts";
import { cancelled, closed, isUnavailable, NotTaken } from "./faults.ts";
import { SseLink } from "./http/sse-link.ts";
import { StreamableLink } from "./http/streamable-link.ts";
import type { UpstreamLink } from "./link.ts";
import type { UpstreamParts } from "./parts.ts";
import { UpstreamSession } from "./session.ts";
import { StdioLink } from "./stdio/stdio-link.ts";

/** Maximum number of in-flight requests of one upstream over its program's pipes. */
const MOST_OUT = 256;
/**
 * Maximum number of in-flight requests of one upstream over HTTP: somewhat fewer than `outbound` allows per server,
 * so that cancellations can still be sent.
 */
const MOST_OUT_HTTP = 40;

/**
 * The single connection of a source, shared by all of its callers. Made at the first request and made again after it
 * was lost. If that fails, it pauses before the next attempt.
 */
export class UpstreamConnection {
  readonly #transport: McpDefinition["transport"];
  readonly #parts: UpstreamParts;
  readonly #breaker: Breaker;
  readonly #changed: () => void;
  readonly #mostOut: number;
  /** Open links and links that are still closing. */
  readonly #links = new Set<UpstreamLink>();
  #session: UpstreamSession | undefined;
  #connecting: Promise<UpstreamSession> | undefined;
  /** Why nothing is tried now. */
  #fault: ConnectorError | undefined;
  #out = 0;
  #closed = false;

  /** @param changed called when the upstream reports that its tools have changed */
  constructor(transport: McpDefinition["transport"], parts: UpstreamParts, changed: () => void) {
    this.#transport = transport;
    this.#parts = parts;
    this.#breaker = new Breaker(parts.clock, parts.random);
    this.#changed = changed;
    this.#mostOut = transport.type === "stdio" ? MOST_OUT : MOST_OUT_HTTP;
  }

  /**
   * Runs `work` on the connection. If the upstream certainly did not accept its request, `work` is repeated once on
   * another connection.
   * @throws ConnectorError
   */
  async use<Answer>(
    signal: AbortSignal,
    work: (session: UpstreamSession) => Promise<Answer>,
  ): Promise<Answer> {
    const permit = this.#enter();
    let session: UpstreamSession | undefined;
    try {
      session = await this.#connected(signal);
      let answer: Answer;
      try {
        answer = await work(session);
      } catch (error) {
        if (!(error instanceof NotTaken)) throw error;
        this.#leave(session);
        session = undefined;
        session = await this.#connected(signal);
        answer = await work(session);
      }
      this.#breaker.answered(permit);
      return answer;
    } catch (error) {
      const fault = error instanceof NotTaken ? error.fault : error;
      this.#report(permit, fault, session);
      throw fault;
    } finally {
      this.#out -= 1;
    }
  }

  /** Closes all links; in-flight requests fail. Resolves when everything has ended. Never throws. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#session = undefined;
    await Promise.all([...this.#links].map((link) => link.close()));
  }

  #enter(): Permit {
    if (this.#closed) throw closed(this.#parts);
    if (this.#out >= this.#mostOut)
      throw this.#unavailable(`already has ${this.#mostOut} calls in flight. Try again later`);
    this.#refuseWhileOpen();
    const permit = this.#breaker.enter();
    if (!permit)
      throw this.#unavailable("has not answered for some time, and another call is testing it now");
    this.#out += 1;
    return permit;
  }

  #refuseWhileOpen(): void {
    const waitMs = this.#breaker.waitMs();
    if (waitMs === 0) return;
    const wait = waitMs < 1_000 ? `${waitMs} ms` : `${Math.ceil(waitMs / 1_000)} s`;
    const { failures } = this.#breaker;
    const often = failures > 1 ? ` ${failures} times in a row` : "";
    const why = this.#fault ? ` ${this.#fault.message}` : "";
    throw this.#unavailable(`has failed${often}. The next attempt is in ${wait}`, why);
  }

  #unavailable(what: string, why = ""): ConnectorError {
    const { output } = this.#fault ?? {};
    return new ConnectorError("unavailable", `The connector ${this.#parts.name} ${what}.${why}`, { output });
  }

  /** Reports the result of a call to the breaker. */
  #report(permit: Permit, fault: unknown, session: UpstreamSession | undefined): void {
    const kind = fault instanceof ConnectorError ? fault.fault : undefined;
    // Without a session, the failed connect has been reported, or nothing was tried.
    if (!session || kind === "cancelled" || kind === "unavailable" || kind === undefined) {
      this.#breaker.withdrawn(permit);
    } else if (session.closed || kind === "timeout" || kind === "unreachable") {
      if (!this.#breaker.lost(permit)) return;
      this.#left(fault);
      this.#leave(session);
    } else {
      this.#breaker.answered(permit);
    }
  }

  /**
   * The connection, shared by all callers that wait for it. If one of them gives up, the connect continues for the
   * others.
   */
  #connected(signal: AbortSignal): Promise<UpstreamSession> {
    if (signal.aborted) return Promise.reject(cancelled(this.#parts));
    if (this.#session && !this.#session.closed) return Promise.resolve(this.#session);
    return new Promise((resolve, reject) => {
      if (!this.#connecting) {
        this.#refuseWhileOpen();
        this.#connecting = this.#connect().finally(() => {
          this.#connecting = undefined;
        });
      }
      const giveUp = (): void => reject(cancelled(this.#parts));
      signal.addEventListener("abort", giveUp, { once: true });
      this.#connecting.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
    });
  }

  async #connect(): Promise<UpstreamSession> {
    // One process at a time: the previous one may hold a lock, a port or a file.
    if (this.#transport.type === "stdio") await Promise.all([...this.#links].map(({ ended }) => ended));
    try {
      if (this.#closed) throw closed(this.#parts);
      const link = this.#makeLink();
      this.#links.add(link);
      void link.ended.then(() => this.#links.delete(link));
      const session = await UpstreamSession.open(link, this.#parts, this.#changed);
      this.#breaker.connected();
      this.#session = session;
      if (this.#fault)
        this.#parts.log.info("a connector is reachable again", { connector: this.#parts.name });
      this.#fault = undefined;
      return session;
    } catch (error) {
      // A connect that was not attempted is not a failure.
      if (!this.#closed && !isUnavailable(error)) {
        this.#breaker.connectFailed();
        this.#left(error);
      }
      throw error;
    }
  }

  #makeLink(): UpstreamLink {
    const transport = this.#transport;
    switch (transport.type) {
      case "stdio":
        return new StdioLink(transport, this.#parts);
      case "http":
        return new StreamableLink(transport, this.#parts);
      case "sse":
        return new SseLink(transport, this.#parts);
    }
  }

  /** Another session may have replaced it since. */
  #leave(session: UpstreamSession): void {
    if (this.#session === session) this.#session = undefined;
    session.retire();
  }

  #left(fault: unknown): void {
    if (!(fault instanceof ConnectorError)) return;
    const { name, log } = this.#parts;
    if (!this.#fault)
      log.warn("a connector is not contacted for a while", { connector: name, why: fault.message });
    this.#fault = fault;
  }
}
