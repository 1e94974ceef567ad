import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  formatNote,
  formatVerifierKey,
  fromBase64,
  type Note,
  NoteError,
  parseNote,
  parseVerifierKey,
  signersOf,
} from "../../../src/ledger/proof/note.ts";
import { sha256 } from "../../../src/ledger/tree-hash.ts";
import { testSigner, verifyEd25519 } from "./signing.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** The example of Go's package golang.org/x/mod/sumdb/note, from which C2SP's format derives. */
const PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const TEXT =
  "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const SIGNATURE =
  "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
const NOTE = `${TEXT}\n${SIGNATURE}`;
/** The example in c2sp.org/signed-note. Its text has empty lines, and letters beyond ASCII. */
const POEM_TEXT =
  "Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned è subito sera.\n";
const POEM = `${POEM_TEXT}\n— quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n`;

const peter = parseVerifierKey(sha256, PETER);
const signer = testSigner("example.com/log", 1);
const key = parseVerifierKey(sha256, signer.verifierKey);
/** A note whose signature line has `value` as its base64. */
const line = (value: string, name = "n") => `a\n\n— ${name} ${value}\n`;
const FIVE_BYTES = "AAAAAAA=";

describe("a note is refused:", () => {
  test.each([
    ["nothing", ""],
    ["a newline", "\n"],
    ["two newlines", "\n\n"],
    ["a text alone", TEXT],
    ["a text and an empty line", `${TEXT}\n`],
    ["a signature alone", SIGNATURE],
    ["a text with its signature, and no empty line between them", `${TEXT}${SIGNATURE}`],
    ["one that is cut off before its last newline", NOTE.slice(0, -1)],
    ["one with an empty line after it", `${NOTE}\n`],
    ["one with a line after its signatures", `${NOTE}— \n`],
    ["one with a hyphen instead of the dash", line(FIVE_BYTES).replace("—", "-")],
    ["one without a dash", line(FIVE_BYTES).replace("— ", "")],
    ["one without a space after the dash", line(FIVE_BYTES).replace("— ", "—")],
    ["one with two spaces after the dash", line(FIVE_BYTES).replace("— ", "—  ")],
    ["one with a space before the dash", line(FIVE_BYTES).replace("—", " —")],
    ["one whose signature has no name", "a\n\n— AAAAAAA=\n"],
    ["one whose signature has no value", "a\n\n— n \n"],
    ["one whose signature has something after it", line(`${FIVE_BYTES} x`)],
    ["one whose signature has a space after it", line(`${FIVE_BYTES} `)],
    ["one whose key name has a plus", line(FIVE_BYTES, "a+b")],
    ["one whose key name has a Unicode space", line(FIVE_BYTES, "a\u00a0b")],
    ["one whose key name has a space that JavaScript does not recognise", line(FIVE_BYTES, "a\u0085b")],
    ["one whose key name has a wide space", line(FIVE_BYTES, "a\u3000b")],
    ["one whose value is not base64", line("*AAAAAA=")],
    ["one whose value is base64url", line("__-_AAA=")],
    ["one whose value lacks its padding", line("AAAAAAA")],
    ["one whose value has left-over bits", line("AAAAAAB=")],
    ["one whose value is only a key's id", line("AAAAAA==")],
    ["one whose value is empty except for padding", line("====")],
    ["one with a good line and a bad one", `${NOTE}— n AAAA\n`],
    ["one with a carriage return", NOTE.replaceAll("\n", "\r\n")],
    ["one with a carriage return in its signature", NOTE.replace("=\n", "=\r\n")],
  ])("%s", (_, note) => {
    expect(() => parseNote(note)).toThrow(NoteError);
  });

  test("one with any control character except newline, anywhere", () => {
    const accepted: string[] = [];
    for (let code = 0; code < 0x20; code++) {
      if (code === 0x0a) continue;
      for (const at of [0, 3, TEXT.length, TEXT.length + 1, TEXT.length + 5, NOTE.length - 1, NOTE.length]) {
        const note = `${NOTE.slice(0, at)}${String.fromCharCode(code)}${NOTE.slice(at)}`;
        try {
          parseNote(note);
          accepted.push(`${code} at ${at}`);
        } catch (error) {
          expect(error).toBeInstanceOf(NoteError);
        }
      }
    }
    expect(accepted).toEqual([]);
  });

  test.each(["\ud83d", "\ude00", "\ude00\ud83d"])("one with half of a surrogate pair", (half) => {
    expect(() => parseNote(`a${half}\n\n— n ${FIVE_BYTES}\n`)).toThrow(NoteError);
  });

  test("one with more than 100 signatures", () => {
    const note = (signatures: number) => `a\n\n${`— n ${FIVE_BYTES}\n`.repeat(signatures)}`;
    expect(parseNote(note(100)).signatures).toHaveLength(100);
    expect(() => parseNote(note(101))).toThrow("too many signatures");
  });

  test("one of more than a million characters", () => {
    const note = (length: number) =>
      `${"x".repeat(length - NOTE.length + TEXT.length - 1)}\n${NOTE.slice(TEXT.length)}`;
    expect(note(1_000_000)).toHaveLength(1_000_000);
    expect(parseNote(note(1_000_000)).signatures).toHaveLength(1);
    expect(() => parseNote(note(1_000_001))).toThrow("too long");
  });
});

describe("a note is parsed", () => {
  test("as in C2SP's examples", () => {
    const note = parseNote(NOTE);
    expect(note.text).toBe(TEXT);
    expect(note.signatures.map(({ name, keyId }) => [name, keyId.toHex()])).toEqual([
      ["PeterNeumann", "c74f20a3"],
    ]);
    expect(note.signatures[0]?.signature).toHaveLength(64);
    expect(formatNote(note)).toBe(NOTE);
    expect(parseNote(POEM).text).toBe(POEM_TEXT);
    expect(formatNote(parseNote(POEM))).toBe(POEM);
  });

  test("with empty lines, and lines like signatures, in its text", () => {
    const text = `${NOTE}\n\nand more — n ${FIVE_BYTES}\n\n`;
    expect(parseNote(`${text}\n${SIGNATURE}`).text).toBe(text);
  });

  test("with a key name in which only JavaScript would see a space, and with any other character", () => {
    const note = parseNote(line(FIVE_BYTES, "a\ufeff—🚪é\u007f"));
    expect(note.signatures[0]?.name).toBe("a\ufeff—🚪é\u007f");
  });
});

describe("a verifier key is refused:", () => {
  const [name, id = "", base64 = ""] = [peter.name, ...PETER.split("+").slice(1)];
  const ecdsa = Buffer.from([2, ...peter.publicKey]).toString("base64");
  test.each([
    ["nothing", ""],
    ["a name", name],
    ["a name and an id", `${name}+${id}`],
    ["one with an empty name", `+${id}+${base64}`],
    ["one with a space in its name", `Peter Neumann+${id}+${base64}`],
    ["one with a Unicode space in its name", `Peter\u2003Neumann+${id}+${base64}`],
    ["one without an id", `${name}++${base64}`],
    ["one with another key's id", `${name}+c74f20a4+${base64}`],
    ["one with another name", `PeterNewmann+${id}+${base64}`],
    ["one with a longer id", `${name}+0${id}+${base64}`],
    ["one with a shorter id", `${name}+${id.slice(1)}+${base64}`],
    ["one without a key", `${name}+${id}+`],
    ["one without base64", `${name}+${id}+*`],
    ["one with a space in its base64", `${name}+${id}+${base64.slice(0, 4)} ${base64.slice(4)}`],
    ["one with base64url", `${name}+${id}+${base64.replace("/", "_")}`],
    ["one with a part after its key", `${PETER}+${id}`],
    ["one of another algorithm", `${name}+${id}+${ecdsa}`],
    [
      "one that is a byte too short",
      `${name}+${id}+${Buffer.from([1, ...peter.publicKey.slice(1)]).toString("base64")}`,
    ],
    [
      "one that is a byte too long",
      `${name}+${id}+${Buffer.from([1, ...peter.publicKey, 0]).toString("base64")}`,
    ],
    ["the key that signs", "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"],
  ])("%s", (_, text) => {
    expect(() => parseVerifierKey(sha256, text)).toThrow(NoteError);
  });
});

describe("a verifier key is parsed", () => {
  test("and written back unchanged, with or without spaces around it", () => {
    expect(formatVerifierKey(sha256, peter.name, peter.publicKey)).toBe(PETER);
    expect(parseVerifierKey(sha256, `  ${PETER}\n`)).toEqual(peter);
    expect(parseVerifierKey(sha256, PETER.replace("c74f", "C74F"))).toEqual(peter);
  });

  test("even if its base64 contains plus signs", () => {
    const keys = Array.from({ length: 50 }, (_, seed) => testSigner("a", seed)).filter(
      ({ verifierKey }) => verifierKey.split("+").length > 3,
    );
    expect(keys.length).toBeGreaterThan(5);
    for (const { verifierKey, publicKey } of keys) {
      expect(parseVerifierKey(sha256, verifierKey).publicKey).toEqual(publicKey);
    }
  });
});

describe("the signers of a note", () => {
  const sign = (text: string) => ({ text, signatures: [signer.sign(text)] });

  test("include a known key: that of the example", async () => {
    expect(await signersOf(parseNote(NOTE), [key, peter], verifyEd25519)).toEqual([peter]);
  });

  test("do not include other keys, even with the same name or the same id", async () => {
    const namesake = parseVerifierKey(sha256, testSigner(signer.name, 2).verifierKey);
    const sameId = { ...namesake, name: "another", keyId: key.keyId };
    expect(await signersOf(sign("a\n"), [namesake, sameId], verifyEd25519)).toEqual([]);
    expect(await signersOf(sign("a\n"), [], verifyEd25519)).toEqual([]);
  });

  test("are an error if a known key's signature is invalid, whoever else signed", async () => {
    const good = sign("a\n");
    const other = testSigner("example.com/witness", 3);
    const otherKey = parseVerifierKey(sha256, other.verifierKey);
    const [signature] = good.signatures;
    if (!signature) throw new Error("nothing was signed");
    const flipped = signature.signature.map((byte, index) => (index === 7 ? byte ^ 1 : byte));
    const bad: readonly (readonly [string, Note])[] = [
      ["another text", { ...good, text: "b\n" }],
      ["a text with one more newline", { ...good, text: "a\n\n" }],
      ["a changed signature", { ...good, signatures: [{ ...signature, signature: flipped }] }],
      ["a short one", { ...good, signatures: [{ ...signature, signature: flipped.slice(1) }] }],
      ["a long one", { ...good, signatures: [{ ...signature, signature: Uint8Array.of(...flipped, 0) }] }],
      ["an empty one", { ...good, signatures: [{ ...signature, signature: new Uint8Array() }] }],
    ];
    for (const [, note] of bad) {
      const signatures = [other.sign(note.text), ...note.signatures];
      await expect(signersOf({ ...note, signatures }, [otherKey, key], verifyEd25519)).rejects.toThrow(
        NoteError,
      );
    }
  });

  test("include each one once, however often it signed", async () => {
    const text = "a\n";
    const note = { text, signatures: [signer.sign(text), signer.sign(text)] };
    expect(await signersOf(note, [key], verifyEd25519)).toEqual([key]);
  });
});

test("any signed text reads back unchanged, and its signers are distinguished from all others", async () => {
  const signers = Array.from({ length: 12 }, (_, seed) => testSigner(`${seed % 5}.example/ö`, seed));
  const text = fc
    .array(
      fc.string({
        unit: fc.constantFrom("a", " ", "\n", "—", "— n AAAA\n", "é", "🚪", "+", "\u2028", "\u007f"),
      }),
    )
    .map((parts) => `${parts.join("")}\n`);
  await fc.assert(
    fc.asyncProperty(
      text,
      fc.subarray(signers, { minLength: 1 }),
      fc.subarray(signers),
      async (text, signing, known) => {
        const note = { text, signatures: signing.map((each) => each.sign(text)) };
        const parsed = parseNote(formatNote(note));
        expect(parsed).toEqual(note);
        const keys = known.map(({ verifierKey }) => parseVerifierKey(sha256, verifierKey));
        const found = await signersOf(parsed, keys, verifyEd25519);
        const expected = signing.filter((each) => known.includes(each));
        expect(found.map(({ publicKey }) => publicKey)).toEqual(expected.map(({ publicKey }) => publicKey));
      },
    ),
    { numRuns: 60 },
  );
});

test.each([
  ["", ""],
  ["AA==", "00"],
  ["+/+/", "fbffbf"],
])("base64 %p is read", (text, hex) => {
  expect(fromBase64(text)?.toHex()).toBe(hex);
});

test.each(["A", "AA", "AA=", "AB==", "-_-_", "AA==\n", " AA==", "A A=", "A\tA=", "AA==AA==", "=", "é"])(
  "base64 %p is refused",
  (text) => {
    expect(fromBase64(text)).toBeUndefined();
  },
);
