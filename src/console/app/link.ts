const FORM = /^#link=([A-Za-z0-9_]+)$/;

let taken: string | null = null;
const listeners = new Set<() => void>();

/**
 * Removes the secret of a one-time link from the address, so that neither the history nor a copied address contains
 * it. Called once, before anything is drawn. Links opened later in the same tab are handled too.
 */
export function watchLinks(): void {
  take();
  addEventListener("hashchange", () => {
    take();
    for (const listener of listeners) listener();
  });
}

function take(): void {
  const secret = FORM.exec(location.hash)?.[1];
  if (secret === undefined) return;
  taken = secret;
  history.replaceState(null, "", location.pathname + location.search);
}

/** Whether an unused link has been opened. */
export function hasLink(): boolean {
  return taken !== null;
}

/** Returns the link's secret, once. */
export function spendLink(): string | null {
  const secret = taken;
  taken = null;
  return secret;
}

/** @returns a function that stops the notifications */
export function onLink(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
