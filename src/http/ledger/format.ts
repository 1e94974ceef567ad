import { preferredType } from "../answer/accept.ts";
import { csvHeader, csvRows } from "./csv.ts";
import type { EntryView } from "./entry.ts";

export const LEDGER_FORMATS = ["json", "ndjson", "csv", "article14"] as const;
export type LedgerFormat = (typeof LEDGER_FORMATS)[number];

/** Media types that select a format in the Accept header. JSON is first, so `*` selects it. */
const ASKED_BY = {
  "application/json": "json",
  "application/x-ndjson": "ndjson",
  "application/ndjson": "ndjson",
  "application/jsonl": "ndjson",
  "text/csv": "csv",
  "application/zip": "article14",
} as const satisfies Record<string, LedgerFormat>;
type ExportMediaType = keyof typeof ASKED_BY;
const OFFERED = Object.keys(ASKED_BY) as readonly ExportMediaType[];

/** The media type of each format in responses and in the API document. */
export const LEDGER_MEDIA_TYPES = {
  json: "application/json",
  ndjson: "application/x-ndjson",
  csv: "text/csv",
  article14: "application/zip",
} as const satisfies Record<LedgerFormat, ExportMediaType>;

export interface NegotiatedFormat {
  readonly format: LedgerFormat;
  readonly contentType: string;
}

/** The format named in the query, else the one that the Accept header prefers, else JSON. */
export function chooseFormat(named: LedgerFormat | undefined, accept: string | null): NegotiatedFormat {
  const type: ExportMediaType =
    named === undefined ? (preferredType(accept, OFFERED) ?? "application/json") : LEDGER_MEDIA_TYPES[named];
  return {
    format: ASKED_BY[type],
    // RFC 4180, section 3: the first row names the columns.
    contentType: type === "text/csv" ? `${type}; charset=utf-8; header=present` : type,
  };
}

export interface EntryFormat {
  readonly extension: string;
  /** The text before the first entry. */
  head(): string;
  lines(entries: readonly EntryView[]): string;
}

/** The formats that consist only of entries. */
export const ENTRY_FORMATS: Readonly<Record<"ndjson" | "csv", EntryFormat>> = {
  ndjson: {
    extension: "ndjson",
    head: () => "",
    lines: (entries) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""),
  },
  csv: { extension: "csv", head: csvHeader, lines: csvRows },
};
