import { Problem } from "../base/errors.ts";

/** Each holds a socket and at most two blocks (64 KiB). */
const STREAMS_PER_WORKSPACE = 2_000;
const STREAMS_PER_NODE = 10_000;
const RETRY_SECONDS = 5;

const NOTHING = (): void => {};

/** A place for one open stream. */
export class StreamPlace {
  readonly workspaceId: number;
  readonly #release: (place: StreamPlace) => void;
  #end = NOTHING;
  #isLost = false;

  constructor(workspaceId: number, release: (place: StreamPlace) => void) {
    this.workspaceId = workspaceId;
    this.#release = release;
  }

  /** Gives the place back. Safe to call more than once. */
  readonly release = (): void => this.#release(this);

  /**
   * @param end ends the stream if its place goes to another workspace. Called immediately if that has already
   *   happened
   */
  endsBy(end: () => void): void {
    if (this.#isLost) end();
    else this.#end = end;
  }

  /** @see endsBy */
  lose(): void {
    this.#isLost = true;
    this.#end();
  }
}

/**
 * The open streams. They do not count against the request limit, so they have their own limit, shared by max-min
 * fairness: a workspace may use what nobody else needs, up to its cap. When all places are taken, a workspace with
 * less than an equal share takes a place from the workspace with the most streams, whose oldest stream ends.
 */
export class OpenStreams {
  readonly #perWorkspace: number;
  readonly #perNode: number;
  /** Oldest first. */
  readonly #places = new Set<StreamPlace>();
  readonly #held = new Map<number, number>();

  constructor(perWorkspace = STREAMS_PER_WORKSPACE, perNode = STREAMS_PER_NODE) {
    this.#perWorkspace = perWorkspace;
    this.#perNode = perNode;
  }

  /**
   * Takes a place for a stream. It MUST be released.
   * @throws Problem 429 `rate_limited`
   */
  take(workspaceId: number): StreamPlace {
    const wanted = (this.#held.get(workspaceId) ?? 0) + 1;
    if (wanted > this.#perWorkspace)
      throw tooMany(
        `The workspace already has ${this.#perWorkspace} open streams. Close one, or retry shortly.`,
      );
    if (this.#places.size >= this.#perNode) this.#makeRoom(wanted);
    const place = new StreamPlace(workspaceId, (released) => this.#release(released));
    this.#places.add(place);
    this.#held.set(workspaceId, wanted);
    return place;
  }

  /** @param wanted number of places that the workspace would then have */
  #makeRoom(wanted: number): void {
    const workspaces = this.#held.size + (wanted === 1 ? 1 : 0);
    if (wanted > this.#perNode / workspaces)
      throw tooMany("The server has too many open streams. Retry shortly.");
    const oldest = this.#oldestOfMost();
    this.#release(oldest);
    oldest.lose();
  }

  /** The oldest stream of the workspace with the most. When all places are taken, it has more than an equal share. */
  #oldestOfMost(): StreamPlace {
    const most = Math.max(...this.#held.values());
    for (const place of this.#places) if (this.#held.get(place.workspaceId) === most) return place;
    throw new Error("no stream holds the places in use");
  }

  #release(place: StreamPlace): void {
    if (!this.#places.delete(place)) return;
    const { workspaceId } = place;
    const left = (this.#held.get(workspaceId) ?? 1) - 1;
    if (left === 0) this.#held.delete(workspaceId);
    else this.#held.set(workspaceId, left);
  }
}

function tooMany(detail: string): Problem {
  return new Problem("rate_limited", detail, { headers: { "Retry-After": String(RETRY_SECONDS) } });
}
