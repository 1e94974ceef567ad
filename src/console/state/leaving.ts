/** What keeps a page from being left by the browser's back and forward, and by keys. */
interface Guard {
  /** Where the page is. */
  readonly address: string;
  /** Asks the reader; `leave` goes where they were about to. */
  readonly ask: (leave: () => void) => void;
}

let guard: Guard | null = null;

/**
 * Hears of the browser's back and forward before the router does. Called once, before the console is drawn: a window calls
 * its listeners in the order in which they came.
 */
export function watchHistory(): void {
  addEventListener("popstate", (event) => {
    if (guard === null) return;
    event.stopImmediatePropagation();
    // The browser has changed the address already: it is put back, and from there back leads to where it was going.
    history.pushState(null, "", guard.address);
    guard.ask(() => history.back());
  });
}

/** Goes where the console itself is about to, such as to what a key leads to; asks first where something would be lost. */
export function askToLeave(go: () => void): void {
  if (guard === null) go();
  else guard.ask(go);
}

/** At most one at a time. @returns what ends it */
export function guardHistory(set: Guard): () => void {
  guard = set;
  return () => {
    if (guard === set) guard = null;
  };
}
