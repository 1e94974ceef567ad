export const REDACTED = "[redacted]";

/**
 * Removes the user and password from a URL; returns other text unchanged. Removes everything before the last `@`,
 * because a password that should have been escaped can end the host too early.
 */
export function redactUrl(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)[\s\S]*@/i, `$1${REDACTED}@`);
}

/** Untrusted text for one line on a terminal: quoted, with control characters escaped, cut at 80 characters. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text).replace(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A key or variable name for a message: unchanged if plain, else quoted. */
export function plainName(name: string): string {
  return /^[\w./:<>@+~[\]-]{1,120}$/.test(name) ? name : quoted(name);
}
