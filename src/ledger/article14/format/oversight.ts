import { stringify } from "csv-stringify/browser/esm/sync";
import type { ReportEntryFields } from "./entry.ts";

/**
 * The columns of `oversight.csv`. Those after `agent` describe what was decided on; the last two describe the call.
 */
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

/** The row of an entry that involved a person; undefined for any other. Also computed when a bundle is verified. */
export function oversightRow(entry: ReportEntryFields): string | undefined {
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

/** Seconds between the presentation of a call and the decision; undefined if it was not presented. */
export function secondsToDecide({ oversight }: ReportEntryFields): number | undefined {
  const presented = Date.parse(oversight?.presented_at ?? "");
  const decided = Date.parse(oversight?.decided_at ?? "");
  const seconds = (decided - presented) / 1000;
  return Number.isFinite(seconds) ? seconds : undefined;
}

const CSV = { record_delimiter: "\r\n", escape_formulas: true, quoted_match: /[\r\n]/ };

/** RFC 4180. A value that a spreadsheet would read as a formula is prefixed with an apostrophe. */
function csvLine(values: readonly (string | number | undefined)[]): string {
  return stringify([[...values]], CSV);
}
