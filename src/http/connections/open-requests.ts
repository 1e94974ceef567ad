export interface Client {
  readonly address: string;
  readonly port: number;
}

/** The client of a request, or null once the request is over: it was answered to the last byte, or its client has left. */
export type ClientOf = (request: Request) => Client | null;

/** The requests are looked through when they are twice as many as were open at the last time, and this many more. */
const BETWEEN_SWEEPS = 256;

/**
 * The requests that have begun and are not over. Bun shows when one is over only to who asks, so those that are stay here
 * until the next sweep.
 */
export class OpenRequests {
  readonly #clientOf: ClientOf;
  readonly #requests = new Set<Request>();
  #nextSweep = BETWEEN_SWEEPS;

  constructor(clientOf: ClientOf) {
    this.#clientOf = clientOf;
  }

  add(request: Request): void {
    this.#requests.add(request);
    if (this.#requests.size >= this.#nextSweep) this.sweep();
  }

  /** Those that are not over, and some that are: never fewer than there are. */
  get atMost(): number {
    return this.#requests.size;
  }

  /** @returns the clients of the requests that are not over */
  sweep(): Client[] {
    const clients: Client[] = [];
    for (const request of this.#requests) {
      const client = this.#clientOf(request);
      if (client) clients.push(client);
      else this.#requests.delete(request);
    }
    this.#nextSweep = 2 * clients.length + BETWEEN_SWEEPS;
    return clients;
  }
}
