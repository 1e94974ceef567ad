import { describe, expect, test } from "bun:test";
import { type OriginRules, refuseForeign, urlOf } from "../../src/mcp/origins.ts";

const LOOPBACK: OriginRules = { publicUrl: null, isLoopback: true };
const OPEN: OriginRules = { publicUrl: null, isLoopback: false };
const PUBLIC: OriginRules = { publicUrl: "https://gate.example.org", isLoopback: false };
const PROXIED: OriginRules = { publicUrl: "https://gate.example.org", isLoopback: true };

type Case = readonly [name: string, rules: OriginRules, host: string | null, origin: string | null];

function judge([, rules, host, origin]: Case): string {
  const headers = new Headers();
  if (host !== null) headers.set("host", host);
  if (origin !== null) headers.set("origin", origin);
  try {
    refuseForeign(headers, rules);
    return "taken";
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "broken";
  }
}

const REFUSED: readonly Case[] = [
  ["null", LOOPBACK, "127.0.0.1:8420", "null"],
  ["an empty origin", LOOPBACK, "127.0.0.1:8420", ""],
  ["another site", LOOPBACK, "127.0.0.1:8420", "https://evil.example"],
  ["another port", LOOPBACK, "127.0.0.1:8420", "http://127.0.0.1:8421"],
  ["no port", LOOPBACK, "127.0.0.1:8420", "http://127.0.0.1"],
  ["another local name than the requested one", LOOPBACK, "127.0.0.1:8420", "http://localhost:8420"],
  ["another scheme than HTTP's", LOOPBACK, "127.0.0.1:8420", "ftp://127.0.0.1:8420"],
  ["an extension's page", LOOPBACK, "127.0.0.1:8420", "chrome-extension://127.0.0.1:8420"],
  ["an invalid origin", LOOPBACK, "127.0.0.1:8420", "127.0.0.1:8420"],
  ["a name that leads here (DNS rebinding)", LOOPBACK, "evil.example:8420", "http://evil.example:8420"],
  ["such a name without an origin", LOOPBACK, "evil.example", null],
  ["a name that begins like a local one", LOOPBACK, "localhost.evil.example", null],
  ["a name that begins like a local address", LOOPBACK, "127.0.0.1.evil.example", null],
  ["a name that ends like a local one", LOOPBACK, "evil-localhost", null],
  ["an address on the network", LOOPBACK, "192.168.1.7:8420", null],
  ["every address", LOOPBACK, "0.0.0.0:8420", null],
  ["an origin without a host", LOOPBACK, null, "http://127.0.0.1:8420"],
  ["another site with an open listener", OPEN, "gate.internal:8420", "http://evil.example:8420"],
  ["null with an open listener", OPEN, "gate.internal:8420", "null"],
  ["another site with a public URL", PUBLIC, "gate.example.org", "https://evil.example"],
  ["http with a public URL that has https", PUBLIC, "gate.example.org", "http://gate.example.org"],
  ["another port with a public URL", PUBLIC, "gate.example.org", "https://gate.example.org:8443"],
  ["a subdomain of the public name", PUBLIC, "gate.example.org", "https://x.gate.example.org"],
  ["the public name as a user name", PUBLIC, "gate.example.org", "https://gate.example.org@evil.example"],
  ["null with a public URL", PROXIED, "gate.example.org", "null"],
  ["another name behind a proxy on this machine", PROXIED, "evil.example", "https://gate.example.org"],
];

const TAKEN: readonly Case[] = [
  ["no origin", LOOPBACK, "127.0.0.1:8420", null],
  ["no host and no origin", LOOPBACK, null, null],
  ["localhost", LOOPBACK, "localhost:8420", "http://localhost:8420"],
  ["localhost in capitals", LOOPBACK, "LocalHost:8420", "http://LOCALHOST:8420"],
  ["IPv6", LOOPBACK, "[::1]:8420", "http://[::1]:8420"],
  ["IPv6 without a port", LOOPBACK, "[::1]", null],
  ["another loopback address", LOOPBACK, "127.0.0.53:8420", null],
  ["https on this machine", LOOPBACK, "localhost", "https://localhost"],
  ["an open listener's own name", OPEN, "gate.internal:8420", "http://gate.internal:8420"],
  ["an open listener, no origin", OPEN, "anything.example", null],
  ["the public URL", PUBLIC, "gate.example.org", "https://gate.example.org"],
  ["the public URL in capitals", PUBLIC, "GATE.example.org", "HTTPS://GATE.EXAMPLE.ORG"],
  ["the public URL with its own port", PUBLIC, "gate.example.org", "https://gate.example.org:443"],
  ["the public URL, with another name inside", PUBLIC, "gate.internal:8420", "https://gate.example.org"],
  ["the public name behind a proxy", PROXIED, "gate.example.org", "https://gate.example.org"],
  ["a local name with a public URL", PROXIED, "127.0.0.1:8420", null],
];

describe("refused:", () => {
  test.each(REFUSED.map((each) => [each[0], each] as const))("%s", (_, each) => {
    expect(judge(each)).toBe("origin_forbidden");
  });
});

describe("accepted:", () => {
  test.each(TAKEN.map((each) => [each[0], each] as const))("%s", (_, each) => {
    expect(judge(each)).toBe("taken");
  });
});

describe("the older transport's endpoint is named by", () => {
  test.each([
    ["the requested host", LOOPBACK, "localhost:8420", "http://localhost:8420"],
    ["the public URL, if it was requested", PUBLIC, "gate.example.org", "https://gate.example.org"],
    ["the inner name, if it was requested", PUBLIC, "gate.internal:8420", "http://gate.internal:8420"],
    ["the public URL, if no host is named", PUBLIC, null, "https://gate.example.org"],
    ["the request's URL, if nothing else is known", LOOPBACK, null, "http://inner.example"],
  ] as const)("%s", (_, rules, host, expected) => {
    const headers = new Headers(host === null ? {} : { host });
    const request = new Request("http://inner.example/mcp/sse", { headers });
    expect(urlOf(request, "/mcp/sse", rules)).toBe(`${expected}/mcp/sse`);
  });
});
