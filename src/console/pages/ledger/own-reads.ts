import { useMemo } from "preact/hooks";

/** Entries of what this page itself has read: each reading is one, and none of them is news to its reader. */
export interface OwnReads {
  /** Takes the number of a call's entry from the headers of its answer. @returns it; 0 where there is none */
  note(headers: Headers): number;
  /** How many entries of its own lie behind `after`, up to `upTo`. */
  count(after: number, upTo: number): number;
}

/** Numbers that are kept: more readings than that behind one look at the list are counted as news. */
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
