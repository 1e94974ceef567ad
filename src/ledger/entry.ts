/** What happened, as one line of evidence. The field names are those of the stored bytes. */
export type Phase = "single" | "intent" | "outcome";
export type EntryOutcome = "allowed" | "denied" | "pending" | "succeeded" | "failed" | "cancelled";
export type Channel = "rest" | "mcp" | "system";

/** Strings and integers alone: no floats, so that the bytes are canonical JSON (RFC 8785) by construction. */
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

/** What a caller says of an entry; the ledger adds `seq`, `prev`, `ts` and the hashes. */
export interface Draft {
  readonly phase: Phase;
  readonly action: string;
  readonly outcome: EntryOutcome;
  readonly channel: Channel;
  readonly actor: string;
  readonly code?: string | undefined;
  /** The intent's seq, on an outcome. */
  readonly ref?: number | undefined;
  readonly requestId?: string | undefined;
  readonly agent?: string | undefined;
  readonly tier?: number | undefined;
  readonly model?: string | undefined;
  readonly task?: string | undefined;
  readonly tool?: string | undefined;
  /** Micro-credits. */
  readonly credits?: number | undefined;
  readonly oversight?: Oversight | undefined;
  readonly detail?: Detail | undefined;
  /** Prompt or arguments: kept as an erasable payload, in the entry as a salted hash only. */
  readonly input?: string | undefined;
  /** Output or result: as `input`. */
  readonly output?: string | undefined;
}

export interface Sealed {
  readonly seq: number;
  /** Hex of the previous entry's leaf; 64 zeros for the first. */
  readonly prev: string;
  readonly ts: string;
  readonly inputHash?: string | undefined;
  readonly outputHash?: string | undefined;
}

/**
 * The bytes of an entry, as JSON text with sorted keys. The literal below names its keys in that order, and JSON.stringify
 * writes strings and integers as RFC 8785 does: a test holds it against a canonicaliser. What is absent is left out.
 */
export function encodeEntry(draft: Draft, sealed: Sealed): string {
  return JSON.stringify({
    action: draft.action,
    actor: draft.actor,
    agent: draft.agent,
    channel: draft.channel,
    code: draft.code,
    credits: draft.credits,
    detail: draft.detail && sortKeys(draft.detail),
    input_hash: sealed.inputHash,
    model: draft.model,
    outcome: draft.outcome,
    output_hash: sealed.outputHash,
    oversight: draft.oversight && sortKeys({ ...draft.oversight }),
    phase: draft.phase,
    prev: sealed.prev,
    ref: draft.ref,
    request_id: draft.requestId,
    seq: sealed.seq,
    task: draft.task,
    tier: draft.tier,
    tool: draft.tool,
    ts: sealed.ts,
  });
}

/** @throws TypeError on a number that is no safe integer: it would not be canonical. */
function sortKeys(value: Detail): Detail {
  const sorted: Record<string, string | number | Detail> = {};
  for (const key of Object.keys(value).sort()) {
    const item = value[key];
    if (item === undefined) continue;
    if (typeof item === "number" && !Number.isSafeInteger(item)) {
      throw new TypeError(`${key} of a ledger entry must be an integer`);
    }
    sorted[key] =
      typeof item === "object" ? sortKeys(item) : typeof item === "string" ? item.toWellFormed() : item;
  }
  return sorted;
}

/** The leaf hash of RFC 9162, section 2.1.1: SHA-256 over a zero byte and the entry's UTF-8 bytes. */
export function leafHash(bytes: string): Buffer {
  return new Bun.CryptoHasher("sha256").update(`\0${bytes}`).digest();
}
