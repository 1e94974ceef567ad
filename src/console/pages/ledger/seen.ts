/** What this browser saw of a workspace's ledger when it looked last, and all of it held. */
export interface Seen {
  /** The signed checkpoint, as it was answered. */
  readonly note: string;
  /** The key that it was checked with, as C2SP writes it. */
  readonly vkey: string;
  /** RFC 3339. */
  readonly at: string;
  /** When it first looked: since then each checkpoint was the beginning of the next. */
  readonly since: string;
}

/*
 * Kept by the workspace's name, not by the ledger's: a server that came with another ledger under another name would be
 * believed otherwise.
 */
const keyOf = (workspace: string) => `gatehouse-ledger-seen:${workspace}`;

/** Null where nothing was seen, or the browser keeps nothing for pages. */
export function readSeen(workspace: string): Seen | null {
  try {
    return parseSeen(JSON.parse(localStorage.getItem(keyOf(workspace)) ?? "null"));
  } catch {
    return null;
  }
}

export function keepSeen(workspace: string, seen: Seen): void {
  try {
    localStorage.setItem(keyOf(workspace), JSON.stringify(seen));
  } catch {
    // Nothing can be compared next time, and the page says so then.
  }
}

export function forgetSeen(workspace: string): void {
  try {
    localStorage.removeItem(keyOf(workspace));
  } catch {
    // Nothing is kept then.
  }
}

function parseSeen(value: unknown): Seen | null {
  if (typeof value !== "object" || value === null) return null;
  const { note, vkey, at, since } = value as Readonly<Record<string, unknown>>;
  const texts = [note, vkey, at, since];
  return texts.every((text) => typeof text === "string") ? (value as Seen) : null;
}
