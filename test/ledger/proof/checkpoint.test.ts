import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  type Checkpoint,
  checkpointText,
  parseCheckpoint,
  parseCheckpoints,
  parseSignedCheckpoint,
} from "../../../src/ledger/proof/checkpoint.ts";
import { formatNote, NoteError, parseVerifierKey, signersOf } from "../../../src/ledger/proof/note.ts";
import { sha256 } from "../../../src/ledger/tree-hash.ts";
import { testSigner, verifyEd25519 } from "./signing.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** The example in c2sp.org/tlog-checkpoint. */
const ROOT = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";
const EXAMPLE_TEXT = `example.com/behind-the-sofa\n20852163\n${ROOT}\n`;
const EXAMPLE = `${EXAMPLE_TEXT}\n— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n`;

const old = testSigner("gatehouse/0123/default", 1);
const now = testSigner("gatehouse/0123/default", 2);

function note(size: number, signers = [now]): string {
  const text = checkpointText({ origin: now.name, size, root: sha256(Buffer.from(`${size}`)) });
  return formatNote({ text, signatures: signers.map((signer) => signer.sign(text)) });
}

describe("a checkpoint is refused:", () => {
  test.each([
    ["nothing", ""],
    ["a newline", "\n"],
    ["two lines", "a\n5\n"],
    ["one that is cut off", `a\n5\n${ROOT}`],
    ["one that is cut off in a foreign line", `a\n5\n${ROOT}\nmore`],
    ["one without an origin", `\n5\n${ROOT}\n`],
    ["one without a size", `a\n\n${ROOT}\n`],
    ["one without a root", "a\n5\n\n"],
    ["one with its lines in another order", `5\na\n${ROOT}\n`],
    ["one with an empty line in it", `a\n5\n${ROOT}\n\nmore\n`],
    ["one with an empty line at its end", `a\n5\n${ROOT}\n\n`],
    ["one with an empty line before it", `\na\n5\n${ROOT}\n`],
    ["a size with a leading zero", `a\n05\n${ROOT}\n`],
    ["a size with a sign", `a\n+5\n${ROOT}\n`],
    ["a size below zero", `a\n-5\n${ROOT}\n`],
    ["a size with a decimal point", `a\n5.0\n${ROOT}\n`],
    ["a size with an exponent", `a\n5e3\n${ROOT}\n`],
    ["a size in hexadecimal", `a\n0x5\n${ROOT}\n`],
    ["a size with a space", `a\n5 \n${ROOT}\n`],
    ["a size in other digits", `a\n٥\n${ROOT}\n`],
    ["a size beyond exact numbers", `a\n9007199254740992\n${ROOT}\n`],
    ["a size of many digits", `a\n${"9".repeat(400)}\n${ROOT}\n`],
    ["a root of 31 bytes", `a\n5\n${Buffer.alloc(31).toString("base64")}\n`],
    ["a root of 33 bytes", `a\n5\n${Buffer.alloc(33).toString("base64")}\n`],
    ["a root in hexadecimal", `a\n5\n${"00".repeat(32)}\n`],
    ["a root with a space", `a\n5\n${ROOT.slice(0, 8)} ${ROOT.slice(8)}\n`],
    ["a root without its padding", `a\n5\n${ROOT.replace("=", "")}\n`],
    ["a root with left-over bits", `a\n5\n${ROOT.replace("I=", "J=")}\n`],
  ])("%s", (_, text) => {
    expect(() => parseCheckpoint(text)).toThrow(NoteError);
  });

  test("a note with another text", () => {
    const text = "a note\nof something else\n";
    expect(() => parseSignedCheckpoint(formatNote({ text, signatures: [now.sign(text)] }))).toThrow(
      NoteError,
    );
  });

  test("a text that nobody signed", () => {
    expect(() => parseSignedCheckpoint(EXAMPLE_TEXT)).toThrow(NoteError);
  });
});

describe("a checkpoint is read", () => {
  test("as in C2SP's example", () => {
    const { checkpoint, note } = parseSignedCheckpoint(EXAMPLE);
    expect(checkpoint).toEqual({
      origin: "example.com/behind-the-sofa",
      size: 20_852_163,
      root: Uint8Array.fromBase64(ROOT),
    });
    expect(checkpointText(checkpoint)).toBe(EXAMPLE_TEXT);
    expect(formatNote(note)).toBe(EXAMPLE);
  });

  test("with foreign lines after it", () => {
    expect(parseCheckpoint(`a\n5\n${ROOT}\nmore\nand more\n`)).toMatchObject({ origin: "a", size: 5 });
  });

  test("at the largest size, and of the empty tree", () => {
    expect(parseCheckpoint(`a\n${Number.MAX_SAFE_INTEGER}\n${ROOT}\n`).size).toBe(Number.MAX_SAFE_INTEGER);
    expect(parseCheckpoint(`a\n0\n${ROOT}\n`).size).toBe(0);
  });

  test("as it was written, whatever its text", () => {
    const checkpoint: fc.Arbitrary<Checkpoint> = fc.record({
      origin: fc.string({ unit: "grapheme", minLength: 1 }).filter((origin) => !/[\n]/.test(origin)),
      size: fc.maxSafeNat(),
      root: fc.uint8Array({ minLength: 32, maxLength: 32 }),
    });
    fc.assert(
      fc.property(checkpoint, (checkpoint) => {
        expect(parseCheckpoint(checkpointText(checkpoint))).toEqual(checkpoint);
      }),
    );
  });
});

describe("a file of checkpoints is refused", () => {
  test.each([
    ["that begins with something else", `checkpoints\n\n${note(1)}`],
    ["with something else between two", `${note(1)}\nmore\n\n${note(2)}`],
    ["with something else at its end", `${note(1)}\nmore\n`],
    ["whose last note is cut off in its signature", `${note(1)}\n${note(2).slice(0, -1)}`],
    [
      "whose last note is cut off before its signature",
      `${note(1)}\n${note(2).slice(0, note(2).indexOf("—"))}`,
    ],
    ["whose last note is cut off in its text", `${note(1)}\n${note(2).slice(0, 10)}`],
    [
      "with a note that has no signature",
      `${checkpointText({ origin: "a", size: 1, root: sha256(Buffer.of()) })}\n${note(2)}`,
    ],
    ["with an empty signature", `${note(1)}\n${note(2).slice(note(2).indexOf("—"))}`],
    ["with line ends of another system", note(1).replaceAll("\n", "\r\n")],
    ["with a byte order mark, as some editors write", `\ufeff\n${note(1)}`],
  ])("%s", (_, file) => {
    expect(() => parseCheckpoints(file)).toThrow(NoteError);
  });
});

describe("a file of checkpoints is read", () => {
  const sizes = (file: string) => parseCheckpoints(file).map(({ checkpoint }) => checkpoint.size);

  test.each([
    ["that is empty", "", []],
    ["with only empty lines", "\n\n\n", []],
    ["of one note", note(7), [7]],
    ["with an empty line after each", `${note(1)}\n${note(2)}\n`, [1, 2]],
    ["with no empty lines between them", `${note(1)}${note(2)}${note(3)}`, [1, 2, 3]],
    ["with many empty lines before, between and after them", `\n\n${note(1)}\n\n\n${note(2)}\n\n`, [1, 2]],
  ])("%s", (_, file, expected) => {
    expect(sizes(file)).toEqual(expected);
  });

  test("with notes that have two signatures, as after a change of keys, with and without empty lines between", async () => {
    const notes = [note(1, [old]), note(2, [old, now]), note(3, [now, old]), note(4)];
    const keys = [old, now].map(({ verifierKey }) => parseVerifierKey(sha256, verifierKey));
    for (const between of ["", "\n"]) {
      const found = parseCheckpoints(notes.join(between));
      expect(found.map(({ note }) => formatNote(note))).toEqual(notes);
      const signers = await Promise.all(found.map(({ note }) => signersOf(note, keys, verifyEd25519)));
      expect(signers.map((each) => each.length)).toEqual([1, 2, 2, 1]);
    }
  });

  test("with any number of notes, however they are separated", () => {
    const part = fc.record({
      size: fc.nat({ max: 50 }),
      signers: fc.subarray([old, now], { minLength: 1 }),
      empty: fc.nat({ max: 3 }),
    });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const notes = parts.map(({ size, signers }) => note(size, signers));
        const file = notes.map((text, index) => text + "\n".repeat(parts[index]?.empty ?? 0)).join("");
        expect(parseCheckpoints(file).map(({ note }) => formatNote(note))).toEqual(notes);
      }),
      { numRuns: 60 },
    );
  });
});
