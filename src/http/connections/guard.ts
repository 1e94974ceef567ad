import type { Server } from "bun";
import { type Clock, every } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { countOpenFiles } from "../../base/open-files/count.ts";
import { openFilesReserve } from "../../base/open-files/reserve.ts";
import { IdleConnectionFinder, keyOf } from "./idle-connections.ts";
import { type InboundSockets, openInboundSockets } from "./inbound-sockets.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { ConnectionPlan } from "./plan.ts";

const LOOK_MS = 250;
/** At most 1/`LOOK_SHARE` of the time is spent checking connections. */
const LOOK_SHARE = 20;
/** The additional share of connections to close, so that the next clients find room. */
const ROOM = 1 / 8;
/** The minimum time between two log lines about closed connections. */
const LOG_MS = 60_000;
/** One descriptor, for listing the descriptors. */
const FOR_LOOKING = 1;

/** The guard of one listening server. */
export interface ConnectionGuardParts {
  readonly server: Pick<Server<unknown>, "requestIP" | "closeIdleConnections" | "port">;
  readonly plan: ConnectionPlan;
  readonly calls: OpenCalls;
  readonly clock: Clock;
  readonly log: Log;
  /** Called with the number of connections closed. */
  closed(count: number): void;
}

/**
 * Keeps the number of clients' connections below the plan's limit, and descriptors free for the program itself.
 * `Bun.serve` accepts connections until the process has no descriptor left, and shows only connections that have sent
 * a complete request head. So this checks the descriptors four times a second. Above the limit, it closes connections
 * without a call. If calls exceed their own limit, workspaces with many calls lose connections to workspaces with
 * fewer.
 */
export class ConnectionGuard {
  readonly #parts: ConnectionGuardParts;
  readonly #sockets: InboundSockets | null = openInboundSockets();
  readonly #finder = new IdleConnectionFinder();
  readonly #endLooking: () => void;
  #nextList = 0;
  #nextLog = 0;
  #nextExcessLog = 0;

  constructor(parts: ConnectionGuardParts) {
    this.#parts = parts;
    parts.calls.attach((request) => parts.server.requestIP(request));
    openFilesReserve.resize(parts.plan.reserve);
    this.#endLooking = every(parts.clock, LOOK_MS, () => this.look());
  }

  /**
   * False if there are as many open calls as connections allowed. Urgent calls are always admitted. An admitted call
   * counts as open until it is over, so its connection is not closed.
   */
  admit(request: Request, isUrgent: boolean): boolean {
    const { plan, calls } = this.#parts;
    if (!isUrgent && calls.hasAsManyAs(plan.connections)) return false;
    calls.add(request, isUrgent);
    if (this.#finder.isLooking) this.#noteCall(request);
    return true;
  }

  /** True while some of the descriptors reserved for the program itself are missing. */
  get isExhausted(): boolean {
    return openFilesReserve.isShort;
  }

  /** Closes connections without a call if there are too many connections or too few descriptors left. */
  look(): void {
    openFilesReserve.refill();
    const { plan, clock } = this.#parts;
    this.#endExcess();
    const open = countOpenFiles();
    // The usual case: too few descriptors are open for there to be too many connections.
    if (open === null || open <= plan.connections) {
      this.#finder.forget();
      return;
    }
    const now = clock.monotonic();
    if (now < this.#nextList) return;
    this.#relieve(open);
    openFilesReserve.refill();
    this.#nextList = clock.monotonic() + (clock.monotonic() - now) * LOOK_SHARE;
  }

  /** Releases the reserve. */
  stop(): void {
    this.#endLooking();
    openFilesReserve.resize(0);
  }

  #noteCall(request: Request): void {
    const client = this.#parts.server.requestIP(request);
    if (client) this.#finder.noteCall(client);
  }

  #relieve(openFiles: number): void {
    const { server, plan } = this.#parts;
    if (!this.#sockets || server.port === undefined) {
      if (openFiles >= plan.openFiles) this.#report(server.closeIdleConnections());
      return;
    }
    const { open, idle } = this.#finder.look(
      this.#listed(this.#sockets, server.port),
      this.#parts.calls.sweep(),
    );
    const tooMany = open > plan.connections ? open - plan.connections * (1 - ROOM) : 0;
    const own = plan.openFiles - plan.connections;
    const left = plan.openFiles - openFiles;
    const tooFewLeft = left < own * ROOM ? 2 * own * ROOM - left : 0;
    const ended = idle.slice(0, Math.ceil(Math.max(tooMany, tooFewLeft)));
    for (const socket of ended) this.#sockets.end(socket);
    if (ended.length > 0) this.#report(ended.length);
  }

  /** Ends calls beyond their limit. Each workspace keeps an equal share. */
  #endExcess(): void {
    const { server, calls, log, clock, closed } = this.#parts;
    const ending = this.#sockets && server.port !== undefined ? calls.excess() : [];
    if (!this.#sockets || server.port === undefined || ending.length === 0) return;
    const byClient = new Map(
      this.#listed(this.#sockets, server.port).map((socket) => [keyOf(socket), socket]),
    );
    for (const { request, client } of ending) {
      const socket = byClient.get(keyOf(client));
      if (socket) this.#sockets.end(socket);
      calls.drop(request);
    }
    closed(ending.length);
    if (clock.monotonic() < this.#nextExcessLog) return;
    this.#nextExcessLog = clock.monotonic() + LOG_MS;
    log.warn("calls of a workspace above its share were ended, because others need the connections", {
      ended: ending.length,
    });
  }

  #listed(sockets: InboundSockets, port: number) {
    return openFilesReserve.lend(FOR_LOOKING, () => sockets.list(port));
  }

  #report(count: number): void {
    const { clock, log, plan, closed } = this.#parts;
    closed(count);
    if (clock.monotonic() < this.#nextLog) return;
    this.#nextLog = clock.monotonic() + LOG_MS;
    log.warn("connections without a call were closed, because there are too many", {
      ...{ closed: count, connections: plan.connections, open_files: plan.openFiles },
    });
  }
}
