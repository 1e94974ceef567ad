import { describe, expect, test } from "bun:test";
import { crc32 } from "node:zlib";
import {
  createSecret,
  hashSecret,
  hasSecretForm,
  hasValidChecksum,
  LINK_PREFIX,
  SESSION_PREFIX,
} from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { redact } from "../../src/base/log.ts";

describe("a text does not have the form of a secret", () => {
  const good = createSecret(systemRandom);
  test.each([
    ["empty", ""],
    ["only the prefix", "gth_"],
    ["one short", good.slice(0, -1)],
    ["one long", `${good}0`],
    ["another prefix", good.replace("gth_", "ghp_")],
    ["upper case prefix", good.replace("gth_", "GTH_")],
    ["a foreign character", `${good.slice(0, -1)}-`],
    ["a line break at its end", `${good}\n`],
  ])("%s", (_, text) => {
    expect(hasSecretForm(text)).toBe(false);
    expect(hasValidChecksum(text)).toBe(false);
  });
});

test("one wrong or swapped character breaks the checksum", () => {
  const secret = createSecret(systemRandom);
  for (let index = 4; index < secret.length; index++) {
    const wrong = secret[index] === "a" ? "b" : "a";
    expect(hasValidChecksum(secret.slice(0, index) + wrong + secret.slice(index + 1))).toBe(false);
  }
  expect(hasValidChecksum(secret)).toBe(true);
});

test("bytes that would favour some characters are skipped", () => {
  let calls = 0;
  const secret = createSecret((bytes) => {
    bytes.fill(calls++ === 0 ? 248 : 247);
  });
  // 247 = 3 × 62 + 61 gives the last character. 248 would favour the first and is skipped.
  expect(secret.slice(4, 47)).toBe("z".repeat(43));
  expect(secret).toHaveLength(53);
  expect(hasValidChecksum(secret)).toBe(true);
  expect(crc32("z".repeat(43))).toBeGreaterThan(0);
});

test("only the SHA-256 is stored", () => {
  expect(hashSecret("gth_x").toString("hex")).toBe(
    new Bun.CryptoHasher("sha256").update("gth_x").digest("hex"),
  );
});

test("secrets of sessions and of links have their own forms, and are removed from log lines", () => {
  const secrets = {
    gth_: createSecret(systemRandom),
    gths_: createSecret(systemRandom, SESSION_PREFIX),
    gthl_: createSecret(systemRandom, LINK_PREFIX),
  };
  for (const [prefix, secret] of Object.entries(secrets)) {
    expect(secret).toMatch(new RegExp(`^${prefix}[0-9A-Za-z]{49}$`));
    expect(hasSecretForm(secret)).toBe(prefix === "gth_");
    expect(hasSecretForm(secret, SESSION_PREFIX)).toBe(prefix === "gths_");
    expect(hasSecretForm(secret, LINK_PREFIX)).toBe(prefix === "gthl_");
    expect(redact(`a ${secret} b`)).toBe(`a ${prefix}[redacted] b`);
  }
});
