/** Keeps a page from being left by back, forward and keyboard shortcuts. */
interface Guard {
  /** The page's address. */
  readonly address: string;
  /** Asks the reader. `leave` continues to the page they were going to. */
  readonly ask: (leave: () => void) => void;
}

let guard: Guard | null = null;

/**
 * Handles back and forward before the router does. Called once, before the console is rendered: a window calls its
 * listeners in order of registration.
 */
export function watchHistory(): void {
  addEventListener("popstate", (event) => {
    if (guard === null) return;
    event.stopImmediatePropagation();
    // The browser has already changed the address: restore it, so that leaving goes back to the intended page.
    history.pushState(null, "", guard.address);
    guard.ask(() => history.back());
  });
}

/** Navigates within the console, e.g. by a shortcut. Asks first if something would be lost. */
export function askToLeave(go: () => void): void {
  if (guard === null) go();
  else guard.ask(go);
}

/** At most one guard at a time. @returns a function that removes it */
export function guardHistory(set: Guard): () => void {
  guard = set;
  return () => {
    if (guard === set) guard = null;
  };
}
