import { preferredType } from "./accept.ts";
import { csvHeader, csvRows } from "./ledger-csv.ts";
import type { EntryView } from "./ledger-entry.ts";

export const LEDGER_FORMATS = ["json", "ndjson", "csv", "article14"] as const;
export type LedgerFormat = (typeof LEDGER_FORMATS)[number];

/** Media types that ask for a format in the header Accept; JSON is first, for `*` stands for it. */
const ASKED_BY = {
  "application/json": "json",
  "application/x-ndjson": "ndjson",
  "application/ndjson": "ndjson",
  "application/jsonl": "ndjson",
  "text/csv": "csv",
  "application/zip": "article14",
} as const satisfies Record<string, LedgerFormat>;
type MediaType = keyof typeof ASKED_BY;
const OFFERED = Object.keys(ASKED_BY) as readonly MediaType[];

/** What a format is called in an answer, and in the API's document. */
export const LEDGER_MEDIA_TYPES = {
  json: "application/json",
  ndjson: "application/x-ndjson",
  csv: "text/csv",
  article14: "application/zip",
} as const satisfies Record<LedgerFormat, MediaType>;

export interface ChosenFormat {
  readonly format: LedgerFormat;
  readonly contentType: string;
}

/** The format that the query names, else the one that the header Accept wants most, else JSON. */
export function chooseFormat(named: LedgerFormat | undefined, accept: string | null): ChosenFormat {
  const type: MediaType =
    named === undefined ? (preferredType(accept, OFFERED) ?? "application/json") : LEDGER_MEDIA_TYPES[named];
  return {
    format: ASKED_BY[type],
    // RFC 4180, section 3: the first row names the columns.
    contentType: type === "text/csv" ? `${type}; charset=utf-8; header=present` : type,
  };
}

export interface EntryFormat {
  readonly extension: string;
  /** What comes before the first entry. */
  head(): string;
  lines(entries: readonly EntryView[]): string;
}

/** The formats that are made of entries alone. */
export const ENTRY_FORMATS: Readonly<Record<"ndjson" | "csv", EntryFormat>> = {
  ndjson: {
    extension: "ndjson",
    head: () => "",
    lines: (entries) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""),
  },
  csv: { extension: "csv", head: csvHeader, lines: csvRows },
};
