/** The fields read from an entry's bytes. All others are ignored. */
export interface ReportEntryFields {
  readonly seq: number;
  readonly ts: string;
  /** Hex of the previous entry's leaf. */
  readonly prev: string;
  readonly phase: string;
  readonly action: string;
  readonly outcome: string;
  readonly actor: string;
  readonly channel?: string | undefined;
  readonly ref?: number | undefined;
  readonly code?: string | undefined;
  readonly request_id?: string | undefined;
  readonly agent?: string | undefined;
  readonly tier?: number | undefined;
  readonly model?: string | undefined;
  readonly task?: string | undefined;
  readonly tool?: string | undefined;
  /** Micro-credits. */
  readonly credits?: number | undefined;
  readonly oversight?: OversightFields | undefined;
  readonly detail?: EntryDetail | undefined;
}

export type EntryDetail = Readonly<Record<string, unknown>>;

export interface OversightFields {
  readonly person?: string | undefined;
  readonly role?: string | undefined;
  readonly decision?: string | undefined;
  readonly presented_at?: string | undefined;
  readonly decided_at?: string | undefined;
  readonly target_seq?: number | undefined;
  readonly arguments_hash?: string | undefined;
  readonly reason_hash?: string | undefined;
}

/** The type of each field. */
const FIELDS = {
  seq: "number",
  ts: "string",
  prev: "string",
  phase: "string",
  action: "string",
  outcome: "string",
  actor: "string",
  channel: "string",
  ref: "number",
  code: "string",
  request_id: "string",
  agent: "string",
  tier: "number",
  model: "string",
  task: "string",
  tool: "string",
  credits: "number",
  oversight: "object",
  detail: "object",
} as const satisfies { readonly [field in keyof ReportEntryFields]-?: string };

const REQUIRED = ["seq", "ts", "prev", "phase", "action", "outcome", "actor"] as const;

const OVERSIGHT_FIELDS = {
  person: "string",
  role: "string",
  decision: "string",
  presented_at: "string",
  decided_at: "string",
  target_seq: "number",
  arguments_hash: "string",
  reason_hash: "string",
} as const satisfies { readonly [field in keyof OversightFields]-?: string };

/** Undefined if the bytes are not an entry. Nothing in them is trusted, since anybody may have changed the ledger. */
export function readEntryFields(bytes: string): ReportEntryFields | undefined {
  try {
    return entryFieldsOf(JSON.parse(bytes));
  } catch {
    return undefined;
  }
}

/** The same for a value that is already parsed. */
export function entryFieldsOf(value: unknown): ReportEntryFields | undefined {
  return isEntry(value) ? value : undefined;
}

function isEntry(value: unknown): value is ReportEntryFields {
  return (
    hasTypes(value, FIELDS) &&
    REQUIRED.every((field) => value[field] !== undefined) &&
    Number.isSafeInteger(value.seq) &&
    (value.oversight === undefined || hasTypes(value.oversight, OVERSIGHT_FIELDS))
  );
}

function hasTypes(
  value: unknown,
  types: Readonly<Record<string, string>>,
): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const fields = value as Readonly<Record<string, unknown>>;
  for (const name in types) {
    const field = fields[name];
    if (field !== undefined && (typeof field !== types[name] || field === null)) return false;
  }
  return true;
}
