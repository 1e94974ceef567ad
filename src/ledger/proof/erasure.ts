/** Which text of an entry: what went in (prompt, arguments) or what came out (output, result). */
export type PayloadKind = "input" | "output";

export interface ErasedPayload {
  readonly seq: number;
  readonly kind: PayloadKind;
}

/** What an entry says was erased: texts by their names, or every text up to an entry. */
export type Erasure = { readonly payloads: readonly ErasedPayload[] } | { readonly upTo: number };

/** How many payloads one record names at most. */
export const NAMED_AT_ONCE = 64;

/** Payloads as a record names them, in the ledger's order: `12.input 13.output`; empty for none. */
export function namesOf(payloads: readonly ErasedPayload[]): string {
  return payloads
    .toSorted((a, b) => a.seq - b.seq || a.kind.localeCompare(b.kind))
    .map(({ seq, kind }) => `${seq}.${kind}`)
    .join(" ");
}

const NAME = /^([1-9][0-9]{0,15})\.(input|output)$/;

/**
 * What an entry, as parsed from its bytes, says was erased. `payload.erase` names texts in `detail.payloads`;
 * `payload.expire` says in `detail.up_to` up to which entry, itself included, all are gone.
 *
 * @returns null for any other entry, for one that erased nothing (refused, or waiting for a task's end), and for one that
 *   does not say it in this form. Nothing that it could say of itself, or of what came after it, is believed.
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
