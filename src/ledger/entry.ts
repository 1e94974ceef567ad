/** The part of an event that one entry records. The field names in this file are those of the stored bytes. */
export type Phase = "single" | "intent" | "outcome";
export type EntryOutcome = "allowed" | "denied" | "pending" | "succeeded" | "failed" | "cancelled";
export type Channel = "rest" | "mcp" | "system";

/** Only strings and integers: without floats, the bytes are canonical JSON (RFC 8785) by construction. */
export type Detail = { readonly [key: string]: string | number | Detail | undefined };

export interface Oversight {
  readonly person: string;
  readonly role?: string;
  readonly decision: string;
  readonly presented_at?: string;
  readonly decided_at?: string;
  readonly target_seq?: number;
  readonly arguments_hash?: string;
  readonly reason_hash?: string;
}

/** The caller's part of an entry. The ledger adds `seq`, `prev`, `ts` and the hashes. */
export interface EntryDraft {
  readonly phase: Phase;
  readonly action: string;
  readonly outcome: EntryOutcome;
  readonly channel: Channel;
  readonly actor: string;
  readonly code?: string | undefined;
  /** Seq of the intent; set on an outcome. */
  readonly ref?: number | undefined;
  readonly requestId?: string | undefined;
  readonly agent?: string | undefined;
  readonly tier?: number | undefined;
  readonly model?: string | undefined;
  readonly task?: string | undefined;
  readonly tool?: string | undefined;
  /** Micro-credits. */
  readonly credits?: number | undefined;
  /** Its hashes are computed from `input` (the arguments decided on) and `output` (the reason) if these are given. */
  readonly oversight?: Oversight | undefined;
  readonly detail?: Detail | undefined;
  /** Prompt or arguments. Kept as an erasable payload; the entry contains only a salted hash. */
  readonly input?: string | undefined;
  /** Output or result. Kept like `input`. */
  readonly output?: string | undefined;
}

export interface EntryFields {
  readonly seq: number;
  /** Hex of the previous entry's leaf; 64 zeros for the first entry. */
  readonly prev: string;
  readonly ts: string;
  readonly inputHash?: string | undefined;
  readonly outputHash?: string | undefined;
}

/**
 * An entry's bytes, as JSON text with sorted keys. The literal below lists its keys in that order, and JSON.stringify
 * writes well-formed strings and integers as RFC 8785 does. A test compares the result with a canonicaliser. Absent
 * fields are omitted. Lone surrogates become U+FFFD, as in UTF-8. Texts longer than `LONGEST_TEXT` are cut, and end with "…".
 * @throws TypeError for a number that is not a safe integer, and for a key of `detail` that is not in snake_case
 */
export function encodeEntry(draft: EntryDraft, sealed: EntryFields): string {
  return JSON.stringify({
    action: draft.action,
    actor: short(draft.actor),
    agent: draft.agent && short(draft.agent),
    channel: draft.channel,
    code: draft.code && short(draft.code),
    credits: integer("credits", draft.credits),
    detail: draft.detail && sortKeys(draft.detail),
    input_hash: sealed.inputHash,
    model: draft.model && short(draft.model),
    outcome: draft.outcome,
    output_hash: sealed.outputHash,
    oversight: draft.oversight && sortKeys({ ...draft.oversight }),
    phase: draft.phase,
    prev: sealed.prev,
    ref: integer("ref", draft.ref),
    request_id: draft.requestId && short(draft.requestId),
    seq: integer("seq", sealed.seq),
    task: draft.task && short(draft.task),
    tier: integer("tier", draft.tier),
    tool: draft.tool && short(draft.tool),
    ts: sealed.ts,
  });
}

/**
 * The maximum number of UTF-16 code units in a string of an entry: three times the longest list that can be recorded,
 * 100 scopes of 206 characters. Entries are kept forever, so anything longer belongs in a payload.
 */
const LONGEST_TEXT = 65_536;
const CUT = "…";

/** A lone surrogate left by the cut also becomes U+FFFD. */
function short(text: string): string {
  const shown = text.length <= LONGEST_TEXT ? text : text.slice(0, LONGEST_TEXT - CUT.length) + CUT;
  return shown.toWellFormed();
}

/** Keys of this form keep their insertion order. JavaScript moves keys that look like numbers to the front. */
const KEY = /^[a-z][a-z0-9_]*$/;

function sortKeys(value: Detail): Detail {
  const sorted: Record<string, string | number | Detail> = {};
  for (const key of Object.keys(value).sort()) {
    const item = value[key];
    if (item === undefined) continue;
    if (!KEY.test(key)) throw new TypeError(`${key} of a ledger entry must be in snake_case`);
    if (typeof item === "object") sorted[key] = sortKeys(item);
    else sorted[key] = typeof item === "string" ? short(item) : integer(key, item);
  }
  return sorted;
}

function integer<T extends number | undefined>(key: string, value: T): T {
  if (value !== undefined && !Number.isSafeInteger(value)) {
    throw new TypeError(`${key} of a ledger entry must be an integer`);
  }
  return value;
}

/** The leaf hash of RFC 9162, section 2.1.1: SHA-256 of a zero byte followed by the entry's UTF-8 bytes. */
export function leafHash(bytes: string): Buffer {
  return new Bun.CryptoHasher("sha256").update(`\0${bytes}`).digest();
}
