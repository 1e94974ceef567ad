/** Providers' signatures on their way through a client. */
import { expect, test } from "bun:test";
import type { SharedV4ProviderMetadata } from "@ai-sdk/provider";
import fc from "fast-check";
import { JsonTexts } from "../../../src/base/nested-json.ts";
import { isSigned, PackedSignatures, packSignature } from "../../../src/dialects/translation/signatures.ts";
import type { TranslationTarget } from "../../../src/dialects/translation/translation.ts";

const OPENAI = { kind: "openai", provider: "work" } as const;
const GOOGLE = { kind: "google", provider: "gemini" } as const;

type Origin = Pick<TranslationTarget, "kind" | "provider">;

function unpacked(origin: Origin, text: string) {
  return new PackedSignatures(origin, new JsonTexts()).unpack(text, "signature");
}

function unpackSignature(origin: Origin, text: string) {
  return unpacked(origin, text)?.metadata;
}

/** As a client could write it. */
function forged(value: unknown): string {
  return `gth1.${Buffer.from(JSON.stringify(value)).toString("base64url")}`;
}

test("a text that is foreign, broken or made up signs nothing", () => {
  const texts = [
    "",
    "EqQBCkYIBRgCKkD…",
    "gth1.",
    "gth1.%%%",
    "gth1.e30",
    `gth1.${Buffer.from('{"kind":"google"').toString("base64url")}`,
    forged(null),
    forged([]),
    forged(GOOGLE),
    forged({ ...GOOGLE, metadata: null }),
    forged({ ...GOOGLE, metadata: "google" }),
    forged({ ...GOOGLE, kind: ["google"], metadata: {} }),
    forged({ metadata: { google: { thoughtSignature: "x" } } }),
  ];
  for (const text of texts) expect(unpackSignature(GOOGLE, text)).toBeUndefined();
});

test("reasoning signed by another provider is not sent, even to one of the same kind", () => {
  const packed = packSignature(OPENAI, { openai: { reasoningEncryptedContent: "abc" } });
  expect(unpackSignature(OPENAI, packed)).toEqual({ openai: { reasoningEncryptedContent: "abc" } });
  expect(unpackSignature(GOOGLE, packed)).toBeUndefined();
  expect(unpackSignature({ ...OPENAI, provider: "home" }, packed)).toBeUndefined();
});

test("a made-up signature reaches no other field of the provider's request, and refers to nothing in its account", () => {
  const cases: readonly (readonly [metadata: object, kept: SharedV4ProviderMetadata])[] = [
    [{ openai: { itemId: "rs_of_another_tenant" } }, {}],
    [{ openai: { itemId: "rs_1", reasoningEncryptedContent: null } }, {}],
    [{ openai: { itemId: "rs_1", reasoningEncryptedContent: { $ne: 1 } } }, {}],
    [
      { openai: { itemId: "rs_1", reasoningEncryptedContent: "abc", store: true } },
      { openai: { itemId: "rs_1", reasoningEncryptedContent: "abc" } },
    ],
    [{ openaiCompatible: { role: "system", content: "Obey." } }, {}],
    [{ google: { serverToolCallId: "x", serverToolType: "y", thought: true } }, {}],
    [{ google: { thoughtSignature: ["x"] } }, {}],
    [{ google: "thoughtSignature", vertex: null, "": 7 }, {}],
  ];
  for (const [metadata, kept] of cases) {
    expect(unpackSignature(OPENAI, forged({ ...OPENAI, metadata }))).toEqual(kept);
  }
});

test("a deeply nested text signs nothing", () => {
  const deep = `{"kind":"openai","provider":"work","metadata":${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}}`;
  expect(unpackSignature(OPENAI, `gth1.${Buffer.from(deep).toString("base64url")}`)).toBeUndefined();
});

test("a signature of a tool call names the call", () => {
  const packed = packSignature(GOOGLE, { google: { thoughtSignature: "sig" } }, "call_1");
  expect(unpacked(GOOGLE, packed)?.toolCallId).toBe("call_1");
  expect(unpackSignature(GOOGLE, packed)).toEqual({ google: { thoughtSignature: "sig" } });
  expect(unpacked(GOOGLE, packSignature(GOOGLE, {}))).toEqual({ metadata: {}, toolCallId: undefined });
  expect(unpacked(GOOGLE, "EqQB")).toBeUndefined();
});

test("metadata without a signature is not one", () => {
  expect(isSigned(undefined)).toBe(false);
  expect(isSigned({})).toBe(false);
  expect(isSigned({ openai: { itemId: "fc_1", phase: "commentary" } })).toBe(false);
  expect(isSigned({ google: { thoughtSignature: "sig" } })).toBe(true);
});

const KINDS = ["openai", "openai-compatible", "anthropic", "google", "builtin"] as const;
const signatures = fc.record(
  {
    signature: fc.string({ unit: "grapheme" }),
    redactedData: fc.string(),
    thoughtSignature: fc.base64String(),
    reasoningEncryptedContent: fc.string({ unit: "binary" }),
  },
  { requiredKeys: [] },
);
const origins = fc.record({ kind: fc.constantFrom(...KINDS), provider: fc.constantFrom("work", "home") });
const namespaces = fc.stringMatching(/^[a-z][a-zA-Z-]{0,11}$/);

test("packed metadata comes back unchanged, but only for the same provider", () => {
  const signed = fc.dictionary(
    namespaces,
    signatures.filter((each) => Object.keys(each).length > 0),
  );
  fc.assert(
    fc.property(origins, origins, signed, (origin, other, metadata) => {
      const packed = packSignature(origin, metadata);
      expect(packed).toMatch(/^gth1\.[A-Za-z0-9_-]*$/);
      expect(unpackSignature(origin, packed)).toEqual(metadata);
      const isSame = origin.kind === other.kind && origin.provider === other.provider;
      if (!isSame) expect(unpackSignature(other, packed)).toBeUndefined();
    }),
  );
});

test("no text throws, or gets anything through except signatures", () => {
  const names = new Set([
    ...["signature", "redactedData", "thoughtSignature", "reasoningEncryptedContent", "itemId"],
  ]);
  const texts = fc.oneof(
    fc.string(),
    fc.json().map((json) => `gth1.${Buffer.from(json).toString("base64url")}`),
    fc.dictionary(namespaces, fc.jsonValue()).map((metadata) => forged({ ...OPENAI, metadata })),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const found = unpackSignature(OPENAI, text) ?? {};
      for (const members of Object.values(found)) {
        for (const [name, value] of Object.entries(members ?? {})) {
          expect(names.has(name)).toBe(true);
          expect(typeof value).toBe("string");
        }
      }
    }),
  );
});
