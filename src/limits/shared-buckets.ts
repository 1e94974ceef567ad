import type { Db } from "../store/db.ts";
import type { BucketRule } from "./bucket.ts";

/** What a node asks of a workspace's bucket. All numbers of tokens are whole. */
export interface BucketQuestion {
  readonly workspaceId: number;
  readonly rule: BucketRule;
  /** The node's time, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** Tokens of the node's lease that it gives back. Negative: tokens that it has used without a lease. */
  readonly returned: number;
  /** How long ago it did so, in milliseconds: the bucket was refilled since. */
  readonly agoMs: number;
  /** Tokens for calls that wait. They get whatever there is. */
  readonly needed: number;
  /** Further tokens, ahead of need. Of what is left, only a small part is lent this way, so no node keeps the last ones. */
  readonly ahead: number;
}

export interface BucketAnswer {
  /** Tokens lent to the node. */
  readonly granted: number;
  /** Tokens left for all nodes. Negative if nodes have used more than there were. */
  readonly tokens: number;
  /** How many nodes share the store, this one included. */
  readonly nodes: number;
}

/** Of what is left, a node is lent at most this part ahead of need. */
const AHEAD_PART = 1 / 8;
/** A node whose clock is ahead of the database's fills a bucket by at most this much, once. */
const AHEAD_MS = 1_000;

const NOW = `LEAST($4::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${AHEAD_MS})`;
const USED = `(${NOW} - $8::bigint)`;
const PER_MS = "$3::float8 / 1000.0";
/** Refilled for the time since, unless a clock went back. A bucket whose rule has changed holds no more than it allows. */
const FILLED = `LEAST($2::float8, tokens + GREATEST(0, ${USED} - updated_at) * ${PER_MS})`;
const BALANCE = `LEAST($2::float8, ${FILLED} + $5::bigint + GREATEST(0, ${NOW} - GREATEST(updated_at, ${USED})) * ${PER_MS})`;
const GRANTED = `GREATEST(0, LEAST(FLOOR(${BALANCE}), $6::bigint + LEAST($7::bigint, GREATEST(0, FLOOR((${BALANCE} - $6::bigint) * ${AHEAD_PART})))))`;

/** One statement, so nodes take turns at the row without a transaction that would have to be repeated. */
const EXCHANGE = `UPDATE request_buckets
  SET tokens = ${BALANCE} - ${GRANTED}, granted = ${GRANTED}, updated_at = GREATEST(updated_at, ${NOW})
  WHERE workspace_id = $1 RETURNING granted, tokens, (SELECT COUNT(*) FROM nodes) AS nodes`;
const FILL = `INSERT INTO request_buckets (workspace_id, tokens, updated_at, granted) VALUES ($1, $2, $3, 0)
  ON CONFLICT (workspace_id) DO NOTHING`;

/**
 * Takes tokens from a workspace's bucket, which all nodes share, and gives tokens back. If the connection is lost, it may
 * have happened twice; the tokens of the first time are then nobody's.
 * @throws StoreUnavailable
 */
export async function exchangeTokens(db: Db, question: BucketQuestion): Promise<BucketAnswer> {
  const { workspaceId, rule, now, returned, needed, ahead, agoMs } = question;
  const { capacity, perSecond } = rule;
  const values = [workspaceId, capacity, perSecond, now, returned, needed, ahead, agoMs];
  // Outside a transaction, so it does not wait behind others of this node. It waits for nothing but the row.
  const exchange = () => db.urgent.get<BucketAnswer>(EXCHANGE, values);
  const known = await exchange();
  if (known) return known;
  await db.urgent.run(FILL, [workspaceId, capacity, now]);
  const filled = await exchange();
  if (!filled) throw new Error("a bucket was removed");
  return filled;
}
