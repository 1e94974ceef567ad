/** The kind of text: input of a call (prompt, arguments) or its output (output, result). */
export type PayloadKind = "input" | "output";

export interface ErasedPayload {
  readonly seq: number;
  readonly kind: PayloadKind;
}

/** What an entry records as erased: named texts, or all texts up to an entry. */
export type Erasure = { readonly payloads: readonly ErasedPayload[] } | { readonly upTo: number };

/** Maximum number of payloads named by one record. */
export const NAMED_AT_ONCE = 64;

/** Names of payloads as in a record, in the ledger's order: `12.input 13.output`. Empty if there are none. */
export function namesOf(payloads: readonly ErasedPayload[]): string {
  return payloads
    .toSorted((a, b) => a.seq - b.seq || a.kind.localeCompare(b.kind))
    .map(({ seq, kind }) => `${seq}.${kind}`)
    .join(" ");
}

const NAME = /^([1-9][0-9]{0,15})\.(input|output)$/;

/**
 * The erasure recorded by an entry, which is given as parsed from its bytes. `payload.erase` names texts in
 * `detail.payloads`. `payload.expire` gives in `detail.up_to` the last entry (inclusive) whose texts are all erased.
 *
 * @returns null for any other entry, for an entry that erased nothing (refused, or waiting for a task to end), and
 *   for one not in this form. An entry cannot record its own erasure or that of later entries.
 */
export function parseErasure(entry: object): Erasure | null {
  const { action, outcome, detail, seq } = entry as Readonly<Record<string, unknown>>;
  if (outcome !== "succeeded" || typeof seq !== "number" || typeof detail !== "object" || detail === null) {
    return null;
  }
  const { payloads, up_to: upTo } = detail as Readonly<Record<string, unknown>>;
  if (action === "payload.expire") {
    return typeof upTo === "number" && Number.isSafeInteger(upTo) && upTo >= 1 && upTo < seq
      ? { upTo }
      : null;
  }
  if (action !== "payload.erase" || typeof payloads !== "string") return null;
  const named: ErasedPayload[] = [];
  for (const name of payloads === "" ? [] : payloads.split(" ")) {
    const found = NAME.exec(name);
    const payload = { seq: Number(found?.[1]), kind: found?.[2] === "input" ? "input" : "output" } as const;
    if (!found || payload.seq >= seq) return null;
    named.push(payload);
  }
  return { payloads: named };
}
