import { stringify } from "csv-stringify/browser/esm/sync";
import type { EntryFields } from "./entry.ts";

/** The columns of `oversight.csv`. Those behind `agent` are about what was decided on, the last two about the call. */
const OVERSIGHT_COLUMNS = [
  "seq",
  "ts",
  "action",
  "outcome",
  "person",
  "role",
  "decision",
  "presented_at",
  "decided_at",
  "seconds",
  "agent",
  "task",
  "tool",
  "target_seq",
  "arguments_hash",
  "reason_hash",
  "actor",
  "request_id",
] as const;

export function oversightHeader(): string {
  return csvLine(OVERSIGHT_COLUMNS);
}

/** The row of an entry in which a person had a hand; undefined for any other. Made anew when a bundle is verified. */
export function oversightRow(entry: EntryFields): string | undefined {
  const { oversight } = entry;
  if (!oversight) return undefined;
  return csvLine([
    entry.seq,
    entry.ts,
    entry.action,
    entry.outcome,
    oversight.person,
    oversight.role,
    oversight.decision,
    oversight.presented_at,
    oversight.decided_at,
    secondsToDecide(entry),
    entry.agent,
    entry.task,
    entry.tool,
    oversight.target_seq,
    oversight.arguments_hash,
    oversight.reason_hash,
    entry.actor,
    entry.request_id,
  ]);
}

/** How long a person had before them what they decided on, in seconds; undefined where it was not presented to them. */
export function secondsToDecide({ oversight }: EntryFields): number | undefined {
  const presented = Date.parse(oversight?.presented_at ?? "");
  const decided = Date.parse(oversight?.decided_at ?? "");
  const seconds = (decided - presented) / 1000;
  return Number.isFinite(seconds) ? seconds : undefined;
}

const CSV = { record_delimiter: "\r\n", escape_formulas: true, quoted_match: /[\r\n]/ };

/** RFC 4180. What a spreadsheet would take for a formula gets an apostrophe in front. */
function csvLine(values: readonly (string | number | undefined)[]): string {
  return stringify([[...values]], CSV);
}
