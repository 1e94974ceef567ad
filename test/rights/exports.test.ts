/**
 * An export takes as long as its reader. If its token ends in the meantime, the export ends too, and the part that
 * arrived does not look complete.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Ledgered, ledgerOf } from "../http/ledger-export-support.ts";
import type { TestGateway } from "../support/gateway.ts";

/** Enough entries for several chunks in each format. */
const ENTRIES = 3_000;

let ledger: Ledgered;
let gateway: TestGateway;
beforeAll(async () => {
  ledger = await ledgerOf(ENTRIES);
  gateway = await ledger.start();
});
afterAll(async () => {
  await gateway.stop();
  ledger.remove();
});

const ends: readonly [string, (id: string) => Promise<unknown>][] = [
  ["revoked", (id) => gateway.call("DELETE", `/v1/tokens/${id}`)],
  ["rotated", (id) => gateway.call("POST", `/v1/tokens/${id}/rotate`)],
  ["expired", async () => ledger.clock.advance(60_000)],
];
const cases = ends.flatMap(([name, end]) =>
  ["ndjson", "csv", "article14"].map((format) => [format, name, end] as const),
);

test.each(cases)("%s is cut off once its token was %s", async (format, _, end) => {
  const body = { name: "auditor", scopes: ["ledger:read"], expires_in: "1m" };
  const { id, secret } = (await gateway.call("POST", "/v1/tokens", { body })).body;
  const response = await open(format, secret);
  expect(response.status).toBe(200);
  const reader = response.body?.getReader();
  if (!reader) throw new Error("there is no body");
  expect((await reader.read()).done).toBe(false);
  await end(id);
  // What was produced earlier is delivered. Then the stream is cut off without a proper end.
  const rest = async () => {
    while (!(await reader.read()).done);
  };
  await expect(rest()).rejects.toThrow("The token is unknown, expired or revoked.");
});

test("an export continues although another token was revoked", async () => {
  const other = await gateway.call("POST", "/v1/tokens", {
    body: { name: "other", scopes: ["ledger:read"] },
  });
  const response = await open("ndjson", gateway.admin);
  const reader = response.body?.getReader();
  if (!reader) throw new Error("there is no body");
  await reader.read();
  await gateway.call("DELETE", `/v1/tokens/${other.body.id}`);
  let pieces = 0;
  while (!(await reader.read()).done) pieces += 1;
  expect(pieces).toBeGreaterThan(1);
});

/** Reads within the process, where no socket buffers what nobody reads. */
function open(format: string, token: string): Promise<Response> {
  const headers = { authorization: `Bearer ${token}` };
  return gateway.gateway.handle(new Request(`http://gate/v1/ledger?format=${format}`, { headers }));
}
