import { addressKey, type InboundSocket } from "./inbound-sockets.ts";
import type { Client } from "./open-calls.ts";

export interface IdleConnections {
  /** Number of connections that clients currently have. */
  readonly open: number;
  /** In closing order: clients with many connections lose theirs before clients with few. */
  readonly idle: readonly InboundSocket[];
}

/**
 * Finds connections that are not in use. A connection is idle if it had no call at two consecutive checks or between
 * them, so a newly connected client is not mistaken for an idle one.
 */
export class IdleConnectionFinder {
  #quietBefore: ReadonlySet<string> = new Set();
  /** Clients that have called since the last check. Empty while no check is in progress. */
  readonly #called = new Set<string>();

  /** True between two checks, while calls must be noted. */
  get isLooking(): boolean {
    return this.#quietBefore.size > 0;
  }

  noteCall(client: Client): void {
    this.#called.add(keyOf(client));
  }

  look(sockets: readonly InboundSocket[], calling: readonly Client[]): IdleConnections {
    for (const client of calling) this.noteCall(client);
    const quiet = sockets.filter((socket) => !this.#called.has(keyOf(socket)));
    const idle = quiet.filter((socket) => this.#quietBefore.has(keyOf(socket)));
    this.#called.clear();
    this.#quietBefore = new Set(quiet.map(keyOf));
    return { open: sockets.length, idle: mostFirst(idle) };
  }

  /** Ends the current pair of checks: the next check is a first one again. */
  forget(): void {
    this.#called.clear();
    this.#quietBefore = new Set();
  }
}

/** Identifies one connection of a client. */
export function keyOf({ address, port }: Client): string {
  return `${addressKey(address)} ${port}`;
}

/** Sorted by client, the client with the most connections first. */
function mostFirst(sockets: readonly InboundSocket[]): InboundSocket[] {
  const byAddress = Map.groupBy(sockets, ({ address }) => address);
  return [...byAddress.values()].toSorted((a, b) => b.length - a.length).flat();
}
