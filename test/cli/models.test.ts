/** `gatehouse models`: names, prices and their origin, and connections that carry nothing. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { whyUnreachable } from "../../src/models/reach.ts";
import { makeAuthority, makeCertificate } from "../connectors/outbound/certificate.ts";
import { FakeClock } from "../support/clock.ts";
import { openDesk } from "./support.ts";

setDefaultTimeout(60_000);

const desk = openDesk();
/** Counts connections, and whatever they carry. */
const received = { connections: 0, bytes: 0 };
let plain: Server;
/** Speaks TLS, with a certificate from an authority that nobody trusts by default. */
let secure: Bun.Server<undefined>;
let securely = 0;
const authority = makeAuthority("tests");

beforeAll(async () => {
  plain = createServer((socket) => {
    received.connections++;
    socket.on("data", (bytes) => {
      received.bytes += bytes.length;
    });
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));
  secure = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: makeCertificate(authority, { addresses: ["127.0.0.1"] }),
    fetch() {
      securely++;
      return new Response();
    },
  });
  writeFileSync(join(desk.cwd, "authority.pem"), authority.certificate);
  writeFileSync(
    join(desk.cwd, "models.yaml"),
    `
providers:
  local: { kind: openai-compatible, base_url: "http://127.0.0.1:${portOf(plain)}/v1", api_key: hunter22-key }
  o: { kind: openai, base_url: "https://127.0.0.1:${secure.port}/v1", api_key: hunter22-key }
  gone: { kind: azure, base_url: "http://127.0.0.1:1/x", api_key: hunter22-key }
models:
  local/priced: { input: 1, output: 2, cached_input: 0.1, cache_writes: 1.25, reasoning: 3 }
tiers:
  1: { models: [local/priced, o/gpt-5-mini, builtin/extractive] }
  2: { models: [local/priced, o/unknown] }
prices: { credits_per_usd: 100, unknown: refuse }
`,
  );
});
afterAll(async () => {
  plain.close();
  await secure.stop(true);
  await desk.clear();
});

function portOf(server: Server): number {
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("not listening");
  return address.port;
}

const VERB = ["models", "--config", "models.yaml"];
const env = { NODE_EXTRA_CA_CERTS: join(desk.cwd, "authority.pem") };

test("models are listed with price and origin, and whether their providers can be reached", async () => {
  const rows: Record<string, unknown>[] = JSON.parse(await desk.out([...VERB, "--json"], env));
  const [list] = rows.filter(({ price_origin }) => price_origin === "list");
  const common = { price_dated: null, refused: false, unreachable_reason: null };
  expect(rows).toEqual([
    {
      ...{ ...common, name: "builtin/extractive", kind: "builtin", tiers: [1], reachable: null },
      ...{ price: { input: 0, output: 0 }, price_origin: "builtin" },
    },
    {
      ...{ ...common, name: "gone/*", kind: "azure", tiers: [], price: null, price_origin: null },
      ...{ reachable: false, unreachable_reason: "ECONNREFUSED" },
    },
    {
      ...{ ...common, name: "local/priced", kind: "openai-compatible", tiers: [1, 2], reachable: true },
      price: { input: 1, output: 2, cached_input: 0.1, cache_writes: 1.25, reasoning: 3 },
      price_origin: "config",
    },
    {
      ...{ ...common, name: "o/gpt-5-mini", kind: "openai", tiers: [1], reachable: true },
      ...{ price: { input: 0.025, output: 0.2, cached_input: 0.0025 }, price_origin: "list" },
      price_dated: list?.price_dated,
    },
    {
      ...{ ...common, name: "o/unknown", kind: "openai", tiers: [2], reachable: true },
      ...{ price: { input: 0, output: 0 }, price_origin: "none", refused: true },
    },
  ]);
  expect(list?.price_dated).toMatch(/^\d{4}-\d{2}-\d{2}$/);
});

test("the table says the same, without a secret", async () => {
  const table = await desk.out(VERB, env);
  const rows = table
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/));
  expect(rows.map(([name, , , price, , reach]) => [name, price, reach])).toEqual([
    ["MODEL", "PRICE", "REACHABLE"],
    ["builtin/extractive", "free", "-"],
    ["gone/*", "-", "no (ECONNREFUSED)"],
    ["local/priced", "1 in, 2 out, 0.1 cached, 1.25 cache writes, 3 reasoning", "yes"],
    ["o/gpt-5-mini", "0.025 in, 0.2 out, 0.0025 cached", "yes"],
    ["o/unknown", "refused", "yes"],
  ]);
  expect(table).not.toContain("hunter22");
});

test("a provider whose certificate nobody vouches for is not reachable", async () => {
  const rows: Record<string, unknown>[] = JSON.parse(await desk.out([...VERB, "--json"]));
  const { reachable, unreachable_reason: reason } = rows.find(({ name }) => name === "o/unknown") ?? {};
  expect(reachable).toBe(false);
  expect(String(reason)).toMatch(/CERT|SIGNATURE|ISSUER/);
});

test("no request was sent: each run opened one connection to each provider, and sent nothing", async () => {
  expect(received).toEqual({ connections: 3, bytes: 0 });
  expect(securely).toBe(0);
});

test("a host that accepts a connection and says nothing is not reachable over TLS", async () => {
  const clock = new FakeClock();
  const silent = createServer(() => clock.advance(5_000));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  expect(await whyUnreachable(`https://127.0.0.1:${portOf(silent)}/v1`, clock)).toBe(
    "no connection within 5000 ms",
  );
  silent.close();
});
