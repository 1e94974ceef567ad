import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createAddressRules } from "../../../src/connectors/outbound/addresses.ts";
import { checkUrl } from "../../../src/connectors/outbound/url.ts";
import { ConnectorError } from "../../../src/connectors/source.ts";

const rules = createAddressRules([]);

/** The error's message, or the normalised URL. */
function said(text: string): string {
  try {
    return checkUrl(text, rules).href;
  } catch (error) {
    if (error instanceof ConnectorError && error.fault === "forbidden_address") return error.message;
    throw error;
  }
}

const SCHEME = "The URL must begin with http:// or https://.";
const USER = "The URL must not contain a user or a password.";
const forbidden = (host: string) =>
  `The URL leads to ${host}, a link-local, metadata or multicast address, which connectors may not reach (see connectors.allow_addresses).`;

describe("refused", () => {
  test.each([
    ["", SCHEME],
    ["api.example.org/x", SCHEME],
    ["ftp://a/", SCHEME],
    ["file:///etc/passwd", SCHEME],
    ["javascript:alert(1)", SCHEME],
    ["unix:/run/docker.sock", SCHEME],
    ["http://", SCHEME],
    ["http://[fe80::1%25eth0]/", SCHEME],
    ["http://169.254.169.254%00/", SCHEME],
    ["http://user:secret@a.example/?key=secret", USER],
    ["http://secret@a.example/", USER],
    ["http://:secret@a.example/", USER],
    ["http://./", "The URL has no host."],
    [`http://a.example/${"x".repeat(16_384)}`, "The URL is longer than 16384 characters."],
    ["http://169.254.169.254/latest/meta-data?key=secret", forbidden("169.254.169.254")],
    ["http://169.254.169.254:80/", forbidden("169.254.169.254")],
    ["http://169.254.169.254./", forbidden("169.254.169.254")],
    ["http://169.254.169.254../", forbidden("169.254.169.254")],
    ["http://2852039166/", forbidden("169.254.169.254")],
    ["http://0xA9FEA9FE/", forbidden("169.254.169.254")],
    ["http://0251.0376.0251.0376/", forbidden("169.254.169.254")],
    ["http://169.254.43518/", forbidden("169.254.169.254")],
    ["http://①69.254.169.254/", forbidden("169.254.169.254")],
    ["http://169。254。169。254/", forbidden("169.254.169.254")],
    ["http://%31%36%39.254.169.254/", forbidden("169.254.169.254")],
    ["http:\\\\169.254.169.254\\", forbidden("169.254.169.254")],
    ["http://0/", forbidden("0.0.0.0")],
    ["https://[::ffff:169.254.169.254]/", forbidden("::ffff:a9fe:a9fe")],
    ["https://[64:ff9b::a9fe:a9fe]/", forbidden("64:ff9b::a9fe:a9fe")],
    ["https://[fe80::1]/", forbidden("fe80::1")],
    ["https://[fd00:ec2::254]/", forbidden("fd00:ec2::254")],
    ["http://metadata.google.internal/", forbidden("metadata.google.internal")],
    ["http://METADATA.google.internal./", forbidden("metadata.google.internal")],
    ["http://metadata。goog/", forbidden("metadata.goog")],
  ])("%s", (text, expected) => {
    expect(said(text)).toBe(expected);
  });
});

describe("accepted", () => {
  test.each([
    ["http://127.0.0.1:3000/mcp", "http://127.0.0.1:3000/mcp"],
    ["http://localhost/", "http://localhost/"],
    ["http://[::1]:3000/", "http://[::1]:3000/"],
    ["https://10.1.2.3/", "https://10.1.2.3/"],
    ["HTTPS://API.example.org/v1?key=1#x", "https://api.example.org/v1?key=1#x"],
    ["https://mcp.internal./sse", "https://mcp.internal./sse"],
  ])("%s", (text, expected) => {
    expect(said(text)).toBe(expected);
  });
});

test("an allowed address is accepted, a metadata name is not, because its address can be used", () => {
  const allowing = createAddressRules(["169.254.169.254"]);
  expect(checkUrl("http://169.254.169.254/", allowing).host).toBe("169.254.169.254");
  expect(() => checkUrl("http://metadata.google.internal/", allowing)).toThrow(ConnectorError);
});

test("any text is either a permitted URL, or refused with a message without path and query", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.webUrl({ withQueryParameters: true }),
    fc
      .tuple(fc.constantFrom("http://", "https:", "ftp://", "http://169.254.1.1/"), fc.string())
      .map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(text, (given) => {
      const result = said(`${given}?SECRET`);
      if (!result.startsWith("http")) expect(result).not.toContain("SECRET");
    }),
  );
});
