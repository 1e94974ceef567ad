/** A provider's message about a request is shown to the client without anything that only the operator knows. */
import { describe, expect, test } from "bun:test";
import { hideSecrets } from "../../../src/models/native.ts";

const KEY = "sk-Prov/Key+1234567890==";
const BASIC = Buffer.from("user:password123").toString("base64");
const PRIVATE_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";
const ACCOUNT = {
  type: "service_account",
  client_email: "gate@project.iam.gserviceaccount.com",
  private_key: `-----BEGIN PRIVATE KEY-----\n${PRIVATE_LINE}\n-----END PRIVATE KEY-----\n`,
};

const hide = hideSecrets({
  kind: "openai-compatible",
  baseUrl: "http://operator:hunter2%2Fhunter2@models.internal:8080/v1",
  apiKey: KEY,
  headers: { "x-upstream": `Basic ${BASIC}` },
  credentials: JSON.stringify(ACCOUNT),
  timeoutMs: 1_000,
});

describe("a provider's message is shown without", () => {
  test.each([
    ["its key", KEY],
    ["its key, percent-encoded", encodeURIComponent(KEY)],
    ["its key in base64", Buffer.from(KEY).toString("base64")],
    ["its key in base64url", Buffer.from(KEY).toString("base64url")],
    ["its key in hexadecimal", Buffer.from(KEY).toString("hex")],
    ["a header's value", `Basic ${BASIC}`],
    ["a header's value without its scheme", BASIC],
    ["a header's value, decoded", "user:password123"],
    ["the password in a header", "password123"],
    ["its address", "http://operator:hunter2%2Fhunter2@models.internal:8080/v1"],
    ["the password in its address", "hunter2/hunter2"],
    ["its host", "models.internal:8080"],
    ["its host without the port", "models.internal"],
    ["its service account", JSON.stringify(ACCOUNT)],
    ["its private key", ACCOUNT.private_key],
    ["a line of its private key", PRIVATE_LINE],
  ])("%s", (_, secret) => {
    expect(hide(`before ${secret} after`)).toBe("before [redacted] after");
  });
});

test("text that is not a secret is shown", () => {
  expect(hide("Basic errors: user 123 used service_account")).toBe(
    "Basic errors: user 123 used service_account",
  );
});
