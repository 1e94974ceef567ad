/** The last state of a workspace's ledger that this browser has verified. */
export interface RememberedHead {
  /** The signed checkpoint as received. */
  readonly note: string;
  /** The key that verified it, in C2SP format. */
  readonly vkey: string;
  /** RFC 3339. */
  readonly at: string;
  /** Time of the first visit. Every checkpoint since then was consistent with the one before. */
  readonly since: string;
}

/* Stored by the workspace's name rather than the ledger's name: otherwise a server with a different ledger under a
   different name would be trusted. */
const keyOf = (workspace: string) => `gatehouse-ledger-seen:${workspace}`;

/** Null if nothing was seen, or if the browser stores nothing for this site. */
export function readRememberedHead(workspace: string): RememberedHead | null {
  try {
    return parseRememberedHead(JSON.parse(localStorage.getItem(keyOf(workspace)) ?? "null"));
  } catch {
    return null;
  }
}

export function rememberHead(workspace: string, seen: RememberedHead): void {
  try {
    localStorage.setItem(keyOf(workspace), JSON.stringify(seen));
  } catch {
    // Without storage there is nothing to compare next time, and the page says so.
  }
}

export function forgetHead(workspace: string): void {
  try {
    localStorage.removeItem(keyOf(workspace));
  } catch {
    // Without storage nothing is kept.
  }
}

function parseRememberedHead(value: unknown): RememberedHead | null {
  if (typeof value !== "object" || value === null) return null;
  const { note, vkey, at, since } = value as Readonly<Record<string, unknown>>;
  const texts = [note, vkey, at, since];
  return texts.every((text) => typeof text === "string") ? (value as RememberedHead) : null;
}
