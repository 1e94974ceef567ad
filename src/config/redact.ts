export const REDACTED = "[redacted]";

/**
 * The text with the user and password of a URL taken out; other text as it is. All before the last `@` goes: a password
 * that should have been escaped makes a URL that ends its host too early.
 */
export function redactUrl(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)[\s\S]*@/i, `$1${REDACTED}@`);
}

/** Text from outside for one line of a terminal: quoted, control characters escaped, cut at 80 characters. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text).replace(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A key or a variable's name for a message: as it is when plain, else quoted. */
export function plainName(name: string): string {
  return /^[\w./:<>@+~[\]-]{1,120}$/.test(name) ? name : quoted(name);
}
