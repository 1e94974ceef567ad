import type { Clock } from "../base/clock.ts";
import type { RandomSource } from "../base/ids.ts";
import type { Tx } from "../store/db.ts";
import { createSecret, hashSecretHex, LINK_PREFIX } from "./secret.ts";

/** The token that a link signs in as. */
export interface LinkedToken {
  readonly workspaceId: number;
  readonly tokenId: string;
  /** The hash of the token's secret when the link was created. The link does not outlive that secret. */
  readonly secretHash: Uint8Array;
}

/** The creator of a link, for the ledger entry of the sign-in. */
export interface LinkMaker {
  readonly actor: string;
  /** The seq of the entry that records the link's creation, in the token's workspace. Null if there is none. */
  readonly ledgerSeq: number | null;
}

export interface SignInLink {
  /** Carried after the link's `#`, where no server and no log sees it. */
  readonly secret: string;
  /** Milliseconds since the Unix epoch. */
  readonly expiresAt: number;
}

/** A used link. */
export interface RedeemedLink extends LinkedToken {
  readonly maker: LinkMaker;
}

/** Links that sign a browser in once, within 30 minutes. */
export interface SignInLinks {
  /** The expiry of a link created now. */
  expiry(): number;
  /**
   * Creates a link, which is valid once the transaction is committed. The caller MUST have checked that the token may be lent,
   * and takes `expiresAt` from `expiry`.
   */
  create(tx: Tx, token: LinkedToken, maker: LinkMaker, expiresAt: number): Promise<SignInLink>;
  /** The token that a link would sign in as. Undefined if it is unknown, used or expired. The link stays valid. */
  find(secret: string): LinkedToken | undefined | Promise<LinkedToken | undefined>;
  /**
   * Uses a link. Of simultaneous requests with the same link, only the first succeeds. If the transaction is rolled back, the
   * link stays valid.
   */
  use(tx: Tx, secret: string): Promise<RedeemedLink | undefined>;
}

const LINK_MS = 30 * 60_000;
/** Maximum number of unused links. Beyond that, the oldest becomes invalid. */
export const LINK_LIMIT = 100;

export function linkExpiry(clock: Pick<Clock, "now">): number {
  return clock.now() + LINK_MS;
}

interface UnusedLink extends LinkedToken {
  readonly maker: LinkMaker;
  readonly expiresAt: number;
}

/**
 * The links of the only process that uses a store. Only their hashes are kept, in memory, and they end with the process.
 * No file contains a link, and one command creates a new one.
 */
export class MemorySignInLinks implements SignInLinks {
  readonly #waiting = new Map<string, UnusedLink>();
  readonly #clock: Pick<Clock, "now">;
  readonly #random: RandomSource;

  constructor(clock: Pick<Clock, "now">, random: RandomSource) {
    this.#clock = clock;
    this.#random = random;
  }

  expiry(): number {
    return linkExpiry(this.#clock);
  }

  async create(tx: Tx, token: LinkedToken, maker: LinkMaker, expiresAt: number): Promise<SignInLink> {
    const { workspaceId, tokenId, secretHash } = token;
    const secret = createSecret(this.#random, LINK_PREFIX);
    const link = { workspaceId, tokenId, secretHash, maker, expiresAt };
    tx.onCommit(() => this.#keep(hashSecretHex(secret), link));
    return { secret, expiresAt };
  }

  find(secret: string): LinkedToken | undefined {
    return this.#find(hashSecretHex(secret));
  }

  async use(tx: Tx, secret: string): Promise<RedeemedLink | undefined> {
    const hash = hashSecretHex(secret);
    const found = this.#find(hash);
    if (!found) return undefined;
    this.#waiting.delete(hash);
    tx.onRollback(() => this.#keep(hash, found));
    return found;
  }

  #find(hash: string): UnusedLink | undefined {
    const found = this.#waiting.get(hash);
    return found && this.#clock.now() < found.expiresAt ? found : undefined;
  }

  #keep(hash: string, link: UnusedLink): void {
    const now = this.#clock.now();
    for (const [old, { expiresAt }] of this.#waiting) if (now >= expiresAt) this.#waiting.delete(old);
    const [oldest] = this.#waiting.keys();
    if (oldest !== undefined && this.#waiting.size >= LINK_LIMIT) this.#waiting.delete(oldest);
    this.#waiting.set(hash, link);
  }
}
