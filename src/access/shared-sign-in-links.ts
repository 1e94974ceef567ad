import type { Clock } from "../base/clock.ts";
import type { RandomSource } from "../base/ids.ts";
import type { Db, Tx } from "../store/db.ts";
import { createSecret, hashSecret, LINK_PREFIX } from "./secret.ts";
import {
  LINK_LIMIT,
  type LinkedToken,
  type LinkMaker,
  linkExpiry,
  type RedeemedLink,
  type SignInLink,
  type SignInLinks,
} from "./sign-in-links.ts";

interface LinkRow {
  readonly hash: Uint8Array;
  readonly workspace_id: number;
  readonly token_id: string;
  readonly secret_hash: Uint8Array;
  readonly maker: string;
  readonly maker_seq: number | null;
  readonly expires_at: number;
  readonly seal: Uint8Array | null;
}

const COLUMNS = "hash, workspace_id, token_id, secret_hash, maker, maker_seq, expires_at, seal";
/** Both name no workspace, because the secret determines it. */
const FIND = `SELECT ${COLUMNS} FROM sign_in_links WHERE hash = $1`;
const USE = `DELETE FROM sign_in_links WHERE hash = $1 RETURNING ${COLUMNS}`;
/** For all workspaces: their number is limited together. */
const PURGE = `DELETE FROM sign_in_links WHERE expires_at <= $1
  OR hash IN (SELECT hash FROM sign_in_links ORDER BY expires_at DESC OFFSET $2)`;
const ADD = `INSERT INTO sign_in_links (${COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;

/** Links as sealed rows with their hashes, so any node can redeem what another one has created. */
export class SharedSignInLinks implements SignInLinks {
  readonly #db: Db;
  readonly #clock: Pick<Clock, "now">;
  readonly #random: RandomSource;

  constructor(db: Db, clock: Pick<Clock, "now">, random: RandomSource) {
    this.#db = db;
    this.#clock = clock;
    this.#random = random;
  }

  expiry(): number {
    return linkExpiry(this.#clock);
  }

  async create(tx: Tx, token: LinkedToken, maker: LinkMaker, expiresAt: number): Promise<SignInLink> {
    const secret = createSecret(this.#random, LINK_PREFIX);
    const row = {
      hash: hashSecret(secret),
      workspace_id: token.workspaceId,
      token_id: token.tokenId,
      secret_hash: token.secretHash,
      maker: maker.actor,
      maker_seq: maker.ledgerSeq,
      expires_at: expiresAt,
    };
    tx.write(PURGE, [this.#clock.now(), LINK_LIMIT - 1]);
    tx.write(ADD, [...Object.values(row), tx.seals.of("sign_in_links", row)]);
    return { secret, expiresAt };
  }

  async find(secret: string): Promise<LinkedToken | undefined> {
    return this.#linkOf(await this.#db.urgent.get<LinkRow>(FIND, [hashSecret(secret)]));
  }

  async use(tx: Tx, secret: string): Promise<RedeemedLink | undefined> {
    return this.#linkOf(await tx.get<LinkRow>(USE, [hashSecret(secret)]));
  }

  #linkOf(row: LinkRow | undefined): RedeemedLink | undefined {
    if (!row || row.expires_at <= this.#clock.now() || !this.#db.seals.fits("sign_in_links", row)) {
      return undefined;
    }
    return {
      ...{ workspaceId: row.workspace_id, tokenId: row.token_id, secretHash: row.secret_hash },
      maker: { actor: row.maker, ledgerSeq: row.maker_seq },
    };
  }
}
