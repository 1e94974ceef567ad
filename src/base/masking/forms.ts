/** A shorter base64 string occurs in other text by chance. */
const MIN_INNER_CHARACTERS = 6;

/**
 * The forms in which a secret may come back: unchanged; percent-encoded by several rules; form-encoded; escaped as in
 * JSON or HTML; in hexadecimal; and inside base64 or base64url, alone or as part of a longer string
 * (`user:password`).
 */
export function formsOf(secret: string): string[] {
  if (secret === "") return [];
  const percent = percentEncoded(secret);
  const json = JSON.stringify(secret).slice(1, -1);
  const hexadecimal = Buffer.from(secret).toString("hex");
  const forms = [
    secret,
    ...percent.flatMap((form) => [form, form.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())]),
    json,
    json.replaceAll("/", "\\/"),
    json.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
    ...htmlEscaped(secret),
    ...[hexadecimal, hexadecimal.toUpperCase()],
    ...insideBase64(Buffer.from(secret)),
  ];
  return [...new Set(forms)];
}

function percentEncoded(secret: string): string[] {
  const component = encodeURIComponent(secret.toWellFormed());
  const form = new URLSearchParams([["", secret]]).toString().slice(1);
  // RFC 3986 reserves characters that encodeURIComponent does not escape; encodeURI keeps the delimiters of URLs.
  const strict = component.replace(/[!'()*]/g, (character) => `%${hex(character)}`);
  return [component, strict, encodeURI(secret.toWellFormed()), form, form.replaceAll("+", "%20")];
}

function hex(character: string): string {
  return character.charCodeAt(0).toString(16).toUpperCase();
}

function htmlEscaped(secret: string): string[] {
  const named = secret
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
  return [named, named.replaceAll("'", "&#39;"), named.replaceAll("'", "&#x27;")];
}

/**
 * The base64 characters that depend only on these bytes, if they begin at the first, second or third byte of a group
 * of three: characters at the edges also contain bits of the neighbouring bytes. Also the full encoding, for bytes
 * that are encoded alone.
 */
function insideBase64(bytes: Buffer): string[] {
  const forms: string[] = [];
  for (const encoding of ["base64", "base64url"] as const) {
    forms.push(bytes.toString(encoding));
    for (const before of [0, 1, 2]) {
      const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64url");
      const first = Math.ceil((before * 8) / 6);
      const end = Math.floor(((before + bytes.length) * 8) / 6);
      const inner = text.slice(first, end);
      if (inner.length < MIN_INNER_CHARACTERS) continue;
      forms.push(encoding === "base64" ? inner.replaceAll("-", "+").replaceAll("_", "/") : inner);
    }
  }
  return forms;
}
