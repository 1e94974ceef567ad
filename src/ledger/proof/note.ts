import type { Sha256 } from "./hash.ts";

/** A C2SP signed note (c2sp.org/signed-note): text and its signatures. Only Ed25519 is supported. */
export interface Note {
  /** Includes the final newline. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

export interface NoteSignature {
  readonly name: string;
  /** Four bytes that, with the name, identify the key. */
  readonly keyId: Uint8Array;
  readonly signature: Uint8Array;
}

/** A key for verifying notes. */
export interface VerifierKey {
  readonly name: string;
  readonly keyId: Uint8Array;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** Verifies an Ed25519 signature (RFC 8032). */
export type VerifySignature = (
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
) => boolean | Promise<boolean>;

export class NoteError extends Error {
  override readonly name = "NoteError";
}

const ED25519 = 1;
const KEY_ID_BYTES = 4;
const SIGNATURE_BYTES = 64;
const PUBLIC_KEY_BYTES = 32;
const NOTE_LIMIT = 1_000_000;
const SIGNATURE_LIMIT = 100;
/** The start of each signature line: an em dash and a space. */
export const SIGNATURE_START = "— ";
const SIGNATURE_LINE = /^— (?<name>[^ ]+) (?<value>[^ ]+)$/u;
/** Key names contain no white space and no plus sign. JavaScript's `\s` differs from Unicode's White_Space. */
const NAME = /^[^\p{White_Space}+]+$/u;
// biome-ignore lint/suspicious/noControlCharactersInRegex: notes contain no control characters except newlines.
const CONTROL = /[\u0000-\u0009\u000b-\u001f]/;

export function keyIdOf(sha256: Sha256, name: string, publicKey: Uint8Array): Uint8Array {
  const head = new TextEncoder().encode(`${name}\n`);
  const bytes = new Uint8Array(head.length + 1 + publicKey.length);
  bytes.set(head);
  bytes[head.length] = ED25519;
  bytes.set(publicKey, head.length + 1);
  return sha256(bytes).slice(0, KEY_ID_BYTES);
}

/** C2SP's verifier key: `<name>+<hex of the key's id>+<base64 of its algorithm and bytes>`. */
export function formatVerifierKey(sha256: Sha256, name: string, publicKey: Uint8Array): string {
  const bytes = new Uint8Array(1 + publicKey.length);
  bytes[0] = ED25519;
  bytes.set(publicKey, 1);
  return `${name}+${keyIdOf(sha256, name, publicKey).toHex()}+${bytes.toBase64()}`;
}

/** @throws NoteError if the text is not a verifier key, or its id does not match its key */
export function parseVerifierKey(sha256: Sha256, text: string): VerifierKey {
  const [name, id, ...rest] = text.trim().split("+");
  const bytes = fromBase64(rest.join("+"));
  if (!name || !NAME.test(name) || !id || !bytes) {
    throw new NoteError("a verifier key has the form <name>+<8 hex digits>+<base64>");
  }
  if (bytes.length !== 1 + PUBLIC_KEY_BYTES || bytes[0] !== ED25519) {
    throw new NoteError("the verifier key is not an Ed25519 key");
  }
  const publicKey = bytes.slice(1);
  const keyId = keyIdOf(sha256, name, publicKey);
  if (keyId.toHex() !== id.toLowerCase()) throw new NoteError("the verifier key's id does not match its key");
  return { name, keyId, publicKey };
}

export function formatNote({ text, signatures }: Note): string {
  return `${text}\n${signatures.map(formatSignature).join("")}`;
}

function formatSignature({ name, keyId, signature }: NoteSignature): string {
  const bytes = new Uint8Array(keyId.length + signature.length);
  bytes.set(keyId);
  bytes.set(signature, keyId.length);
  return `${SIGNATURE_START}${name} ${bytes.toBase64()}\n`;
}

/** @throws NoteError if the text is not a note */
export function parseNote(note: string): Note {
  if (note.length > NOTE_LIMIT) throw new NoteError("the note is too long");
  if (CONTROL.test(note) || !note.isWellFormed()) throw new NoteError("the note contains control characters");
  const at = note.lastIndexOf("\n\n");
  if (at < 0 || !note.endsWith("\n")) throw new NoteError("the note has no signatures");
  const lines = note.slice(at + 2, -1).split("\n");
  if (lines.length > SIGNATURE_LIMIT) throw new NoteError("the note has too many signatures");
  return { text: note.slice(0, at + 1), signatures: lines.map(parseSignature) };
}

function parseSignature(line: string): NoteSignature {
  const { name = "", value = "" } = SIGNATURE_LINE.exec(line)?.groups ?? {};
  const bytes = fromBase64(value);
  if (!NAME.test(name) || !bytes || bytes.length <= KEY_ID_BYTES) {
    throw new NoteError("a signature line of the note is malformed");
  }
  return { name, keyId: bytes.slice(0, KEY_ID_BYTES), signature: bytes.slice(KEY_ID_BYTES) };
}

/**
 * Which of the keys signed the note.
 * @throws NoteError if a signature names one of them and is invalid: then the whole note is invalid
 */
export async function signersOf(
  note: Note,
  keys: readonly VerifierKey[],
  verify: VerifySignature,
): Promise<VerifierKey[]> {
  const message = new TextEncoder().encode(note.text);
  const signers: VerifierKey[] = [];
  for (const { name, keyId, signature } of note.signatures) {
    const key = keys.find((known) => known.name === name && known.keyId.toHex() === keyId.toHex());
    if (!key || signers.includes(key)) continue;
    if (signature.length !== SIGNATURE_BYTES || !(await verify(key.publicKey, message, signature))) {
      throw new NoteError(`the signature of ${name} is invalid`);
    }
    signers.push(key);
  }
  return signers;
}

const SPACE = /\s/;

/** Undefined if the text is not canonical base64: padded, without spare bits or spaces. */
export function fromBase64(text: string): Uint8Array | undefined {
  if (SPACE.test(text)) return undefined;
  try {
    return Uint8Array.fromBase64(text, { lastChunkHandling: "strict" });
  } catch {
    return undefined;
  }
}
