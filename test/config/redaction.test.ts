import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { checkConfig } from "../../src/config/check.ts";
import { tryLoadConfig } from "../../src/config/load.ts";
import { configError } from "../../src/config/problems.ts";
import { configTable, showConfig } from "../../src/config/show.ts";
import { type Given, sources } from "./support.ts";

/** Every text about the configuration that people see. */
function said(given: Given): string {
  const result = tryLoadConfig(sources(given));
  const check = JSON.stringify(checkConfig(sources(given)));
  if (!result.ok) {
    const { message, hint } = configError(result.problems);
    return `${message}\n${hint}\n${check}`;
  }
  const { values } = result.loaded;
  return `${JSON.stringify(showConfig(values))}\n${configTable(values)}\n${check}`;
}

/** Places for a secret: valid ones, and ones that cause an error there or next to it. */
const PLACES: Record<string, (secret: string) => Given> = {
  "api key": (secret) => ({ yaml: provider(`api_key: ${quote(secret)}`) }),
  "api key, from a variable": (secret) => ({
    yaml: provider('api_key: "$' + '{KEY}"'),
    env: { KEY: secret },
  }),
  "api key, from a file": (secret) => ({
    yaml: provider('api_key: "$' + '{KEY}"'),
    env: { KEY_FILE: "/key" },
    files: { "/key": secret },
  }),
  "api key, instead of its file": (secret) => ({
    yaml: provider('api_key: "$' + '{KEY}"'),
    env: { KEY_FILE: secret },
  }),
  "api key, as a list": (secret) => ({ yaml: provider(`api_key: [${quote(secret)}]`) }),
  "api key, as a value of a mapping": (secret) => ({ yaml: provider(`api_key: { a: ${quote(secret)} }`) }),
  "api key, on two lines": (secret) => ({ yaml: provider(`api_key: ${quote(`${secret}\n${secret}`)}`) }),
  "api key, along with other errors": (secret) => ({
    yaml: provider(`api_key: ${quote(secret)}, kindd: x, timeout_ms: -1`),
  }),
  "api key, in a file that is not YAML": (secret) => ({
    yaml: provider(`api_key: ${quote(secret)} ${quote(secret)}`),
  }),
  "api key, after an unclosed quote": (secret) => ({
    yaml: `providers:\n  a:\n    kind: openai\n    api_key: ${quote(secret).slice(0, -1)}`,
  }),
  header: (secret) => ({ yaml: provider(`headers: { Authorization: ${quote(secret)} }`) }),
  "headers, as text": (secret) => ({ yaml: provider(`headers: ${quote(secret)}`) }),
  webhook: (secret) => ({ yaml: `notify: { webhook: ${quote(`https://x.example/${secret}`)} }` }),
  "webhook that is not a URL": (secret) => ({ yaml: `notify: { webhook: ${quote(secret)} }` }),
  "webhook's secret": (secret) => ({ yaml: `notify: { secret: ${quote(secret)} }` }),
  "webhook, from a variable": (secret) => ({ env: { GATEHOUSE_NOTIFY_WEBHOOK: secret } }),
  "admin token": (secret) => ({ env: { GATEHOUSE_ADMIN_TOKEN: secret } }),
  "admin token, from a file": (secret) => ({
    env: { GATEHOUSE_ADMIN_TOKEN_FILE: "/t" },
    files: { "/t": secret },
  }),
  "admin token, in the file": (secret) => ({ yaml: `admin_token: ${quote(secret)}` }),
  "master key": (secret) => ({ env: { GATEHOUSE_MASTER_KEY: secret } }),
  "master key, in the file": (secret) => ({ yaml: `master_key: ${quote(secret)}` }),
  "password of a URL": (secret) => ({
    yaml: provider(`base_url: ${quote(`https://u:${secret}@x.example`)}`),
  }),
  "password of a public URL": (secret) => ({ yaml: `public_url: ${quote(`https://u:${secret}@x.example`)}` }),
  "vendor's key": (secret) => ({ env: { OPENAI_API_KEY: secret } }),
  "vendor's key, from a file": (secret) => ({ env: { GEMINI_API_KEY_FILE: "/k" }, files: { "/k": secret } }),
};

function provider(fields: string): string {
  return `providers: { a: { kind: openai, ${fields} } }`;
}

/** Quotes a text for YAML, with `${` escaped. */
function quote(text: string): string {
  return JSON.stringify(text.replaceAll("${", () => "$${"));
}

const secret = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9_-]{10,60}$/),
  fc.stringMatching(/^[!-~]{10,60}$/),
  fc.string({ minLength: 10, maxLength: 60, unit: "binary" }).filter((text) => text.trim().length >= 10),
  fc.stringMatching(/^gth_[0-9A-Za-z]{49}$/),
);

describe("a secret is shown nowhere", () => {
  test.each(Object.entries(PLACES))("%s", (_, given) => {
    fc.assert(
      fc.property(secret, (text) => {
        const output = said(given(text));
        for (const form of [text, text.trim(), JSON.stringify(text).slice(1, -1), encodeURIComponent(text)]) {
          expect(output).not.toContain(form);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("and the test would notice, because other values are shown", () => {
    expect(said({ yaml: provider("api_key: secret-of-a-provider") })).toContain("[redacted]");
    expect(said({ env: { GATEHOUSE_LOG_LEVEL: "secret-of-a-provider" } })).toContain("secret-of-a-provider");
  });
});
