import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { asConnectorError } from "../../../src/connectors/outbound/errors.ts";
import { type TestOutbound, testOutbound } from "../../support/outbound.ts";
import { makeAuthority, makeCertificate, type ServerCertificate } from "./certificate.ts";

const authority = makeAuthority("Test authority");
const stranger = makeAuthority("Another authority");
const resolve = async () => ["127.0.0.1"];
let connections = new Set<number>();
const servers = new Map<string, Bun.Server<undefined>>();
const outbounds: TestOutbound[] = [];

beforeAll(() => {
  const certificates: Record<string, ServerCertificate> = {
    good: makeCertificate(authority, { names: ["good.test", "also-good.test"] }),
    address: makeCertificate(authority, { addresses: ["127.0.0.1"] }),
    expired: makeCertificate(authority, { names: ["good.test"], until: 2020 }),
    strange: makeCertificate(stranger, { names: ["good.test"] }),
  };
  for (const [name, tls] of Object.entries(certificates)) {
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls,
      fetch(request, self) {
        connections.add(self.requestIP(request)?.port ?? 0);
        return new Response(request.headers.get("host"));
      },
    });
    servers.set(name, server);
  }
});

afterEach(() => {
  connections = new Set();
});

afterAll(async () => {
  for (const each of outbounds) each.close();
  for (const server of servers.values()) await server.stop(true);
});

function trusting(authorities?: string): TestOutbound {
  const made = testOutbound({ resolve, ...(authorities === undefined ? {} : { authorities }) });
  outbounds.push(made);
  return made;
}

const url = (server: string, host: string) => `https://${host}:${servers.get(server)?.port}/?key=SECRET`;

/** The answer's text, or the error in words. */
async function outcome(outbound: TestOutbound, target: string): Promise<string> {
  try {
    return await (await outbound.fetch(target)).text();
  } catch (error) {
    const { fault, message } = asConnectorError(error, "The server");
    return `${fault}: ${message}`;
  }
}

describe("the certificate of a pinned connection is checked against the name", () => {
  const OTHER_NAME = "unreachable: The server has a certificate for another name.";
  const UNKNOWN = "unreachable: The server has a certificate that is not signed by a trusted authority.";

  test.each([
    ["another name", "good", "bad.test", authority.certificate, OTHER_NAME],
    ["the address instead of the name", "good", "127.0.0.1", authority.certificate, OTHER_NAME],
    ["a name, by a certificate for the address", "address", "good.test", authority.certificate, OTHER_NAME],
    ["an unknown authority", "strange", "good.test", authority.certificate, UNKNOWN],
    ["an authority that the system does not know", "good", "good.test", undefined, UNKNOWN],
    [
      "one that has expired",
      "expired",
      "good.test",
      authority.certificate,
      "unreachable: The server has a certificate that has expired.",
    ],
  ])("refused: %s", async (_, server, host, authorities, expected) => {
    expect(await outcome(trusting(authorities), url(server, host))).toBe(expected);
    expect(connections.size).toBe(0);
  });

  test("refused even if the environment turns checks off", async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
    try {
      expect(await outcome(trusting(), url("good", "good.test"))).toBe(UNKNOWN);
      expect(await outcome(trusting(authority.certificate), url("good", "bad.test"))).toBe(OTHER_NAME);
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
  });

  test.each([
    ["its own", "good", "good.test"],
    ["another of its names", "good", "also-good.test"],
    ["in other letter case, with a final dot", "good", "GOOD.test."],
    ["its address", "address", "127.0.0.1"],
  ])("taken: %s", async (_, server, host) => {
    const target = url(server, host);
    expect(await outcome(trusting(authority.certificate), target)).toBe(new URL(target).host);
  });

  test("a connection is reused for its own name, and for no other", async () => {
    const outbound = trusting(authority.certificate);
    const good = url("good", "good.test");
    const bad = url("good", "bad.test");
    const results: string[] = [];
    for (const target of [good, good, bad, good, bad]) results.push(await outcome(outbound, target));
    const { host } = new URL(good);
    expect(results).toEqual([host, host, OTHER_NAME, host, OTHER_NAME]);
    expect(connections.size).toBe(1);
  });
});

test("TLS to a port without TLS is reported as such", async () => {
  const plain = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("plain") });
  const said = await outcome(trusting(), `https://good.test:${plain.port}/?key=SECRET`);
  await plain.stop(true);
  expect(said).toBe("unreachable: The server does not speak TLS, which https requires.");
});
