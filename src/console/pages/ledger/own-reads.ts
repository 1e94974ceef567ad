import { useMemo } from "preact/hooks";

/** Entries caused by this page's own reads, which are not news to its reader. */
export interface OwnReads {
  /** Notes the entry that an answer's headers name. @returns its number; 0 if there is none */
  note(headers: Headers): number;
  /** The number of own entries after `after`, up to `upTo`. */
  count(after: number, upTo: number): number;
}

/** The maximum number of entries remembered. Older ones count as new. */
const MOST = 1_000;

export function useOwnReads(): OwnReads {
  return useMemo(() => {
    const own: number[] = [];
    return {
      note(headers) {
        const seq = Number(headers.get("gatehouse-ledger") ?? 0);
        if (seq > 0) own.push(seq);
        if (own.length > MOST) own.shift();
        return seq;
      },
      count: (after, upTo) => own.filter((seq) => seq > after && seq <= upTo).length,
    };
  }, []);
}
