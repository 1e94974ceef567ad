import { afterEach, expect, test } from "bun:test";
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { TestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";
import { type Entry, type Ledgered, ledgerOf, linesOf } from "./ledger-export-support.ts";
import { rawRequest } from "./stream-support.ts";

let ledger: Ledgered | undefined;
let gateway: TestGateway | undefined;
afterEach(async () => {
  await gateway?.stop();
  ledger?.remove();
});

/** About 900 bytes per entry in ndjson, so large counts exceed what a connection can buffer. */
async function startWith(count: number): Promise<TestGateway> {
  ledger = await ledgerOf(count);
  gateway = await ledger.start();
  return gateway;
}

/** Reads an export within the process, where no socket buffers unread data. */
function open({ gateway: within, admin }: TestGateway, query: string, token = admin): Promise<Response> {
  return within.handle(
    new Request(`http://gate/v1/ledger?${query}`, { headers: { authorization: `Bearer ${token}` } }),
  );
}

async function restOf(reader: {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
}): Promise<string> {
  const pieces: Uint8Array[] = [];
  for (let next = await reader.read(); !next.done; next = await reader.read())
    pieces.push(next.value ?? new Uint8Array());
  return Buffer.concat(pieces).toString();
}

test("an export shows the ledger at the time of the request, however slowly it is read", async () => {
  const started = await startWith(2_000);
  const response = await open(started, "format=ndjson");
  const reader = response.body?.getReader();
  if (!reader) throw new Error("there is no body");
  const { value } = await reader.read();
  for (let call = 0; call < 5; call++) await started.call("GET", "/v1/agents");
  const entries = linesOf(Buffer.from(value ?? new Uint8Array()).toString() + (await restOf(reader)));
  const own = (await started.call("GET", `/v1/ledger/${response.headers.get("gatehouse-ledger")}`))
    .body as Entry;
  expect(entries.map(({ seq }) => seq)).toEqual(Array.from({ length: own.seq - 1 }, (_, index) => index + 1));
  expect(own.detail).toEqual({ format: "ndjson", size: own.seq - 1 });
});

test("a workspace may run two exports at once, as may others; one that ends or is abandoned makes room", async () => {
  const started = await startWith(2_000);
  const other = await started.workspace("other");
  const first = await open(started, "format=ndjson");
  const second = await open(started, "format=csv");
  const third = await open(started, "format=ndjson");
  expect([third.status, third.headers.get("retry-after"), await third.json()]).toEqual([
    429,
    "10",
    expect.objectContaining({ code: "rate_limited" }),
  ]);
  // Neither a page nor a list counts as an export.
  expect((await open(started, "format=csv&limit=5")).status).toBe(200);
  expect((await open(started, "limit=5")).status).toBe(200);
  const others = await open(started, "format=ndjson", other);
  expect(linesOf(await others.text()).map(({ action }) => action)).toContain("token.issue");

  await first.body?.cancel();
  const fourth = await open(started, "format=csv");
  expect(fourth.status).toBe(200);
  expect((await open(started, "format=ndjson")).status).toBe(429);
  expect((await fourth.text()).split("\r\n").length).toBeGreaterThan(2_000);
  const fifth = await open(started, "format=csv");
  expect(fifth.status).toBe(200);
  for (const { body } of [second, fifth]) await body?.cancel();
  // A refused export is recorded as an export.
  const { data } = (await started.call("GET", "/v1/ledger?action=ledger.read&order=desc&limit=200")).body;
  expect(data.filter(({ code }: Entry) => code === "rate_limited")).toMatchObject([
    { outcome: "denied", detail: { format: "ndjson" } },
    { outcome: "denied", detail: { format: "ndjson" } },
  ]);
});

const STALLED = 40_000;

test("a client that reads nothing for five minutes is disconnected", async () => {
  // Far more than the sockets of both sides can buffer, however busy the machine is.
  const started = await startWith(STALLED);
  const stalled = rawRequest(started, { path: "/v1/ledger?format=ndjson" });
  await stalled.head();
  stalled.socket.pause();
  const open2 = await open(started, "format=csv");
  expect((await open(started, "format=csv")).status).toBe(429);
  // Nothing shows when the exports stall, so five minutes pass repeatedly until both are abandoned.
  await until(async () => {
    ledger?.clock.advance(5 * 60_000 + 1);
    const others = [await open(started, "format=csv"), await open(started, "format=csv")];
    for (const { body } of others) await body?.cancel();
    return others.every(({ status }) => status === 200);
  });
  stalled.socket.resume();
  await stalled.ended();
  expect(linesOf(stalled.body()).length).toBeLessThan(STALLED);
  expect(stalled.socket.destroyed).toBe(true);
  await expect(open2.text()).rejects.toThrow("read nothing");
  expect((await open(started, "format=csv&agent=nobody")).status).toBe(200);
});

test("a store that fails midway breaks the connection, so a part does not look complete", async () => {
  const started = await startWith(12_000);
  overwritePageOf(join(started.dataDir, "gatehouse.db"), '"seq":9000,');
  for (const format of ["ndjson", "csv"]) {
    const client = rawRequest(started, { path: `/v1/ledger?format=${format}` });
    expect(await client.head()).toStartWith("HTTP/1.1 200");
    await client.ended();
    expect(client.socket.destroyed).toBe(true);
    const whole = fetch(`${started.url}/v1/ledger?format=${format}`, {
      headers: { authorization: `Bearer ${started.admin}` },
    }).then((response) => response.text());
    await expect(whole).rejects.toThrow();
  }
  // Undamaged entries can still be read, and the failed exports hold no slots.
  const { body, status } = await started.call("GET", "/v1/ledger?limit=200");
  expect([status, body.data.length]).toEqual([200, 200]);
  const some = await Promise.all([1, 2].map(() => open(started, "format=ndjson&to=2026-01-02T03:10:00Z")));
  expect(some.map((response) => response.status)).toEqual([200, 200]);
  for (const response of some) expect(linesOf(await response.text()).length).toBeGreaterThan(256);
});

/** Overwrites a page as a failing disk would, while a program has the file open. */
function overwritePageOf(path: string, text: string): void {
  const at = readFileSync(path).indexOf(text);
  if (at < 0) throw new Error(`${text} is not in the file`);
  const file = openSync(path, "r+");
  writeSync(file, new Uint8Array(4_096), 0, 4_096, at - (at % 4_096));
  closeSync(file);
}
