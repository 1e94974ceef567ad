import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";

const FLOOD = 3_000;
const MINUTE = 60_000;
const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 0));
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ clock });
});
afterAll(() => gateway.stop());

interface Refused {
  readonly code: string | null;
  readonly request_id: string | null;
  readonly detail: { readonly source: string; readonly count?: number };
}
const refused = async (): Promise<Refused[]> =>
  (await gateway.call("GET", "/v1/ledger?action=auth.refused&limit=200")).body.data;
const counted = (entries: readonly Refused[]) =>
  entries.reduce((sum, entry) => sum + (entry.detail.count ?? 1), 0);

/** Waits until housekeeping has written this many entries; it writes after the clock has moved. */
async function swept(entries: number): Promise<Refused[]> {
  await until(async () => (await refused()).length >= entries);
  return refused();
}

test("500 unauthenticated calls from one source leave one entry, then one more with the count of the rest", async () => {
  const ledgered: string[] = [];
  for (let index = 0; index < FLOOD; index++) {
    const answer = await gateway.call("GET", "/v1/agents", { token: index % 2 === 0 ? null : "gth_unknown" });
    expect(answer.status).toBe(401);
    const seq = answer.headers.get("gatehouse-ledger");
    if (seq !== null) ledgered.push(seq);
  }
  expect(ledgered).toHaveLength(1);
  const first = await refused();
  expect(first).toHaveLength(1);
  expect(first[0]).toMatchObject({ code: "unauthenticated", detail: { source: "127.0.0.1" } });

  clock.advance(MINUTE);
  const entries = await swept(2);
  expect(entries).toHaveLength(2);
  expect(entries[1]).toMatchObject({ detail: { source: "127.0.0.1", count: FLOOD - 1 } });
  expect(counted(entries)).toBe(FLOOD);
});

test("a flood over several minutes leaves a few entries a minute, and counts every call", async () => {
  const before = await refused();
  for (let minute = 0; minute < 3; minute++) {
    for (let index = 0; index < 40; index++) await gateway.call("GET", "/v1/agents", { token: null });
    clock.advance(MINUTE);
    await swept(before.length + 2 * (minute + 1));
  }
  clock.advance(MINUTE);
  const after = await refused();
  expect(after.length - before.length).toBeLessThanOrEqual(6);
  expect(counted(after) - counted(before)).toBe(3 * 40);
});

test("calls that were only counted are recorded when the program ends", async () => {
  const again = await startGateway({ clock });
  for (let index = 0; index < 10; index++) await again.call("GET", "/v1/agents", { token: null });
  clock.advance(MINUTE);
  await again.gateway.stop();
  const { dataDir, admin } = again;
  const third = await startGateway({ clock, dataDir });
  const { body } = await third.call("GET", "/v1/ledger?action=auth.refused", { token: admin });
  expect(counted(body.data)).toBe(10);
  await third.stop();
  rmSync(dataDir, { recursive: true });
});
