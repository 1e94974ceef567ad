import { addressKey, type InboundSocket } from "./inbound-sockets.ts";
import type { Client } from "./open-calls.ts";

export interface IdleConnections {
  /** Connections that clients have now. */
  readonly open: number;
  /** Those to end first come first: clients with many of them lose theirs before clients with few. */
  readonly idle: readonly InboundSocket[];
}

/**
 * Tells connections that only exist from those that are used. A connection is idle if it had no call in two looks in a
 * row, nor between them, so a client that has just connected is not taken for one that sends nothing.
 */
export class IdleConnectionFinder {
  #quietBefore: ReadonlySet<string> = new Set();
  /** Clients that have called since the last look. Empty while nobody looks. */
  readonly #called = new Set<string>();

  /** True between two looks: calls are to be noted. */
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

  /** Nobody looks any more: the next look is the first of two again. */
  forget(): void {
    this.#called.clear();
    this.#quietBefore = new Set();
  }
}

/** One connection of a client. */
export function keyOf({ address, port }: Client): string {
  return `${addressKey(address)} ${port}`;
}

/** One client's after the other's, the client with the most first. */
function mostFirst(sockets: readonly InboundSocket[]): InboundSocket[] {
  const byAddress = Map.groupBy(sockets, ({ address }) => address);
  return [...byAddress.values()].toSorted((a, b) => b.length - a.length).flat();
}
