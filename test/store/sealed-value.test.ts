import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { open, SealDamaged, seal, WrongKey } from "../../src/store/sealed-value.ts";
import { openSecretKey, type SecretKey } from "../../src/store/secret-key.ts";

function keyOf(byte: number): SecretKey {
  return openSecretKey({ masterKey: Buffer.alloc(32, byte).toString("hex"), dataDir: "nowhere" });
}

const key = keyOf(1);
const bytes = fc.uint8Array({ maxLength: 300 });
const nameOf = (act: () => unknown): string => {
  try {
    act();
    return "opened";
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
};

describe("refused", () => {
  test("any bit that was changed; a changed key id counts as another key", () => {
    fc.assert(
      fc.property(bytes, fc.string(), fc.nat(), (plaintext, context, at) => {
        const sealed = seal(key, plaintext, context);
        const bit = at % (sealed.length * 8);
        const byte = bit >> 3;
        sealed[byte] = (sealed[byte] ?? 0) ^ (1 << (bit & 7));
        const expected = byte >= 1 && byte <= 8 ? "WrongKey" : "Damaged";
        expect(nameOf(() => open(key, sealed, context))).toBe(expected);
      }),
    );
  });

  test("any part of it, and anything longer", () => {
    const sealed = seal(key, "secret", "here");
    for (let length = 0; length < sealed.length; length++) {
      expect(() => open(key, sealed.subarray(0, length), "here")).toThrow(SealDamaged);
    }
    expect(() => open(key, Buffer.concat([sealed, Buffer.of(0)]), "here")).toThrow(SealDamaged);
  });

  test("a different place from the one it was sealed for", () => {
    fc.assert(
      fc.property(bytes, fc.string(), fc.string(), (plaintext, context, other) => {
        fc.pre(Buffer.compare(Buffer.from(context), Buffer.from(other)) !== 0);
        const sealed = seal(key, plaintext, context);
        expect(nameOf(() => open(key, sealed, other))).toBe("Damaged");
      }),
    );
  });

  test("another key, reported as such", () => {
    const sealed = seal(key, "secret", "here");
    expect(() => open(keyOf(2), sealed, "here")).toThrow(WrongKey);
    expect(() => open(keyOf(2), sealed, "elsewhere")).toThrow(WrongKey);
  });

  test("another key with the same id, reported as damage", () => {
    const twin: SecretKey = { ...keyOf(2), id: key.id };
    expect(() => open(twin, seal(key, "secret", "here"), "here")).toThrow(SealDamaged);
  });
});

test("a sealed text can be opened", () => {
  fc.assert(
    fc.property(bytes, fc.string({ unit: "binary" }), (plaintext, context) => {
      expect(new Uint8Array(open(key, seal(key, plaintext, context), context))).toEqual(plaintext);
    }),
  );
  expect(open(key, seal(key, "ein Schlüssel 🔑", "here"), "here").toString()).toBe("ein Schlüssel 🔑");
});

test("the same text is never sealed to the same bytes, and none of it shows", () => {
  const all = Array.from({ length: 200 }, () => Buffer.from(seal(key, "a secret to keep", "here")));
  expect(new Set(all.map((sealed) => sealed.subarray(9, 21).toString("hex"))).size).toBe(200);
  for (const sealed of all) expect(sealed.includes("secret")).toBe(false);
});

test("the nonce comes from the given source", () => {
  const sealed = seal(key, "x", "here", (target) => target.fill(9));
  expect(Buffer.from(sealed.subarray(9, 21))).toEqual(Buffer.alloc(12, 9));
});

test("the format, on which stored secrets depend", () => {
  const sealed = seal(key, "secret", "connector\n1\ngithub", (target) => target.fill(9));
  expect(Buffer.from(sealed).toString("hex")).toBe(
    "01770ae37414c53542090909090909090909090909b76a44bcab44bf115ddefc3221502357561102a0c7b1",
  );
});
