import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { type EntryFields, formOf } from "./form.ts";

/** How often a server signs: after so many entries, and after so many seconds where there are new ones. */
export interface SigningRule {
  readonly every: number;
  readonly seconds: number;
}

/** Where no signed entry says another. */
export const DEFAULT_RULE: SigningRule = { every: 256, seconds: 10 };

/** What the configuration takes: a rule beyond it is none that a server had. */
const MOST: SigningRule = { every: 1_000_000, seconds: 86_400 };

/** Entries of one group that a server writes at once: so many can lie on disk before the next checkpoint is signed. */
const LARGEST_GROUP = 20_000;
/** A busy server signs late, and tries again where signing failed. */
const PERIODS = 6;
const GRACE_SECONDS = 60;

const ENTRY =
  "SELECT CAST(bytes AS BLOB) AS bytes FROM main.ledger NOT INDEXED WHERE workspace_id = $1 AND seq = $2";

/** The rule that a server began to sign by, as it records a change of it; null for every other entry. */
export function ruleOf({ action, outcome, channel, detail }: EntryFields): SigningRule | null {
  if (action !== "config.change" || outcome !== "succeeded" || channel !== "system") return null;
  const { checkpoint_every: every, checkpoint_seconds: seconds } = detail ?? {};
  return isWithin(every, MOST.every) && isWithin(seconds, MOST.seconds) ? { every, seconds } : null;
}

/** The default where there are none. */
export function laxestOf(rules: readonly SigningRule[]): SigningRule {
  return {
    every: Math.max(DEFAULT_RULE.every, ...rules.map(({ every }) => every)),
    seconds: Math.max(DEFAULT_RULE.seconds, ...rules.map(({ seconds }) => seconds)),
  };
}

function isWithin(value: unknown, most: number): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1 && value <= most;
}

/**
 * Whether a server that signs by the rule, however it ended, leaves so much unsigned. A clean stop leaves nothing; one that was
 * killed leaves what came since the last checkpoint.
 * @param times of the first entry that no checkpoint covers and of the last one, in ms; null where they are not known
 */
export function isTailTooLong(
  { every, seconds }: SigningRule,
  entries: number,
  times: { readonly first: number; readonly last: number } | null,
): boolean {
  if (entries <= 0) return false;
  if (entries >= every + LARGEST_GROUP) return true;
  return times !== null && times.last - times.first > (PERIODS * seconds + GRACE_SECONDS) * 1000;
}

/** When an entry says that it was written, in ms; null of one that is not there or cannot be read. */
export function timeOf(database: ReadOnlyDatabase, workspaceId: number, seq: number): number | null {
  const row = database.get<{ bytes: unknown }>(ENTRY, [workspaceId, seq]);
  const ts = row?.bytes instanceof Uint8Array ? formOf(row.bytes).fields?.ts : undefined;
  const time = typeof ts === "string" ? Date.parse(ts) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}
