import type { Clock } from "../base/clock.ts";
import type { RandomSource } from "../base/ids.ts";
import { createSecret, hashSecretHex, LINK_PREFIX } from "./secret.ts";

/** The token that a link signs in as. */
export interface LinkedToken {
  readonly workspaceId: number;
  readonly tokenId: string;
  /** Of the secret that the token had when the link was made: the link does not outlive it. */
  readonly secretHash: Uint8Array;
}

/** Who has made a link, for the ledger's entry of who is signed in by it. */
export interface LinkMaker {
  readonly actor: string;
  /** The seq of the entry that says so, in the token's workspace; null where there is none. */
  readonly ledgerSeq: number | null;
}

export interface SignInLink {
  /** What the link carries behind its `#`, where no server and no log sees it. */
  readonly secret: string;
  /** Milliseconds since the Unix epoch. */
  readonly expiresAt: number;
}

/** A link that has been used up. */
export interface UsedLink extends LinkedToken {
  readonly maker: LinkMaker;
  /** Makes it good again: nobody was signed in by it. */
  giveBack(): void;
}

const LINK_MS = 30 * 60_000;
/** Links that wait to be used; past that the oldest is good no more. */
const LINK_LIMIT = 100;

interface Waiting extends LinkedToken {
  readonly maker: LinkMaker;
  readonly expiresAt: number;
}

/**
 * Links that sign a browser in once, within 30 minutes. They are kept in memory, by their hashes, and end with the process: none
 * is in any file, and a new one costs a word on the command line.
 */
export class SignInLinks {
  readonly #waiting = new Map<string, Waiting>();
  readonly #clock: Pick<Clock, "now">;
  readonly #random: RandomSource;

  constructor(clock: Pick<Clock, "now">, random: RandomSource) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Until when a link is good that is made now. */
  expiry(): number {
    return this.#clock.now() + LINK_MS;
  }

  /** Whoever calls this has made sure that the token may be lent, and takes `expiresAt` from `expiry`. */
  create(token: LinkedToken, maker: LinkMaker, expiresAt = this.expiry()): SignInLink {
    const { workspaceId, tokenId, secretHash } = token;
    const secret = createSecret(this.#random, LINK_PREFIX);
    this.#keep(hashSecretHex(secret), { workspaceId, tokenId, secretHash, maker, expiresAt });
    return { secret, expiresAt };
  }

  /** Whom a link would sign in as now; undefined where it is unknown, used or too old. It stays good. */
  find(secret: string): LinkedToken | undefined {
    return this.#find(hashSecretHex(secret));
  }

  /** Uses a link up. Of those who come at once with the same one, the first has it. */
  use(secret: string): UsedLink | undefined {
    const hash = hashSecretHex(secret);
    const found = this.#find(hash);
    if (!found) return undefined;
    this.#waiting.delete(hash);
    return { ...found, giveBack: () => this.#keep(hash, found) };
  }

  #find(hash: string): Waiting | undefined {
    const found = this.#waiting.get(hash);
    return found && this.#clock.now() < found.expiresAt ? found : undefined;
  }

  #keep(hash: string, link: Waiting): void {
    const now = this.#clock.now();
    for (const [old, { expiresAt }] of this.#waiting) if (now >= expiresAt) this.#waiting.delete(old);
    const [oldest] = this.#waiting.keys();
    if (oldest !== undefined && this.#waiting.size >= LINK_LIMIT) this.#waiting.delete(oldest);
    this.#waiting.set(hash, link);
  }
}
