const FORM = /^#link=([A-Za-z0-9_]+)$/;

let taken: string | null = null;
const listeners = new Set<() => void>();

/**
 * Takes the secret of a one-time link out of the address, which neither the history nor a copied address is to hold. Called once,
 * before anything is drawn; a link that is opened in the same tab later is taken as well.
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

/** Whether a link was opened and not used yet. */
export function hasLink(): boolean {
  return taken !== null;
}

/** Its secret, once. */
export function spendLink(): string | null {
  const secret = taken;
  taken = null;
  return secret;
}

/** @returns what ends the listening */
export function onLink(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
