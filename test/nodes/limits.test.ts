/** A workspace's request limit counts the calls of all nodes once. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Answered, TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";
import { type Entry, ledger } from "../tasks/support.ts";

setDefaultTimeout(60_000);

describe.skipIf(missingPostgres !== undefined)("the request limit of two nodes", () => {
  let started: TestNodes;
  let first: TestGateway;
  let second: TestGateway;
  beforeEach(async () => {
    started = await startNodes(2);
    const [one, other] = started.nodes;
    if (!one || !other) throw new Error("two nodes were started");
    [first, second] = [one, other];
  });
  afterEach(() => started.stop());

  /** Sets a limit, with a full bucket. */
  async function set(limits: object): Promise<void> {
    expect((await first.call("PATCH", "/v1/workspace", { body: { limits } })).status).toBe(200);
    const isKnown = async () => {
      const { body } = await second.call("GET", "/v1/workspace");
      return Object.entries(limits).every(([name, value]) => body.limits?.[name] === value);
    };
    await until(isKnown);
    // Whatever the nodes have leased or owe.
    await Bun.sleep(50);
    await started.database.query("UPDATE request_buckets SET tokens = 1000000");
  }

  /** Makes calls at once, in turn over the nodes. */
  const many = (count: number): Promise<Answered[]> =>
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        (index % 2 === 0 ? first : second).call("GET", "/v1/tiers"),
      ),
    );
  const served = (answers: readonly Answered[]) => answers.filter(({ status }) => status === 200).length;
  const remaining = ({ headers }: Answered) =>
    Number(/r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1] ?? Number.NaN);
  async function notices(): Promise<Entry[]> {
    return (await ledger(first)).filter(({ action }) => action === "limit.exceeded");
  }

  test("of 10 a minute, enforced, lets 10 of 40 calls through", async () => {
    // Low enough that nothing is refilled during the test: one token takes six seconds.
    await set({ requests_per_minute: 10, enforcement: "enforced" });
    const begun = performance.now();
    const answers = await many(40);
    const refilled = Math.ceil((performance.now() - begun) / 6_000);
    expect(served(answers)).toBeGreaterThanOrEqual(9);
    expect(served(answers)).toBeLessThanOrEqual(10 + refilled);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.every(({ headers }) => Number(headers.get("retry-after")) >= 1)).toBe(true);
    expect(refused.map(remaining)).toEqual(refused.map(() => 0));
    // Stays refused, on both.
    expect(served(await many(10))).toBeLessThanOrEqual(2);
  });

  test("is used up by one node for the other, which says so in its headers", async () => {
    await set({ requests_per_minute: 20, enforcement: "enforced" });
    for (let call = 0; call < 15; call++) expect((await first.call("GET", "/v1/tiers")).status).toBe(200);
    const answer = await second.call("GET", "/v1/tiers");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("ratelimit-policy")).toBe('"requests";q=20;w=60');
    // It learns what the other has used once it needs more than it has.
    await until(async () => remaining(await second.call("GET", "/v1/tiers")) <= 8);
    let more = 0;
    while ((await second.call("GET", "/v1/tiers")).status === 200) more += 1;
    expect(more).toBeLessThanOrEqual(8);
    expect((await first.call("GET", "/v1/tiers")).status).toBe(429);
  });

  test("is reported once a minute if it is soft, and no call is refused", async () => {
    // Not across the end of a minute.
    if (Date.now() % 60_000 > 50_000) await Bun.sleep(11_000);
    await set({ requests_per_minute: 10, enforcement: "soft" });
    const answers = await many(80);
    expect(served(answers)).toBe(80);
    expect(answers.some(({ headers }) => headers.get("gatehouse-limit-exceeded") === "requests")).toBe(true);
    const again = await many(20);
    expect(again.map(({ headers }) => headers.get("gatehouse-limit-exceeded"))).toEqual(
      again.map(() => "requests"),
    );
    const told = await notices();
    expect(told).toHaveLength(1);
    expect(told[0]?.detail).toMatchObject({ limit: "requests", enforcement: "soft" });
    const left = await started.database.query<{ uncounted: string }>("SELECT uncounted FROM limit_notices");
    // The other node's first call is left for the next notice.
    expect(Number(left[0]?.uncounted)).toBe(1);
  });

  test("that is changed on one node holds on the other", async () => {
    await set({ requests_per_minute: 100_000, enforcement: "enforced" });
    expect(served(await many(100))).toBe(100);
    await set({ requests_per_minute: 5 });
    expect(served(await many(40))).toBeLessThanOrEqual(7);
    // Otherwise the change itself would be refused.
    await started.database.query("UPDATE request_buckets SET tokens = 1000000");
    await Bun.sleep(100);
    await set({ requests_per_minute: 100_000 });
    expect(served(await many(40))).toBe(40);
  });

  test("that is lowered is not filled again by what a node had of the limit before", async () => {
    await set({ requests_per_minute: 100_000, enforcement: "enforced" });
    expect(served(await many(100))).toBe(100);
    await set({ requests_per_minute: 5 });
    const begun = performance.now();
    const ofSecond = await Promise.all(Array.from({ length: 20 }, () => second.call("GET", "/v1/tiers")));
    // The first node made no call since the change, so what it has is of the old limit.
    const ofFirst = await Promise.all(Array.from({ length: 20 }, () => first.call("GET", "/v1/tiers")));
    const refilled = Math.ceil((performance.now() - begun) / 12_000);
    expect(served(ofSecond) + served(ofFirst)).toBeLessThanOrEqual(5 + refilled);
  });

  test("while the bucket cannot be asked, each node has its share", async () => {
    await set({ requests_per_minute: 100, enforcement: "enforced" });
    await many(4);
    await until(async () => (await started.database.query("SELECT 1 FROM nodes")).length === 2);
    await started.database.query("ALTER TABLE request_buckets RENAME TO away");
    try {
      const answers = await many(160);
      expect(served(answers)).toBeGreaterThan(60);
      expect(served(answers)).toBeLessThanOrEqual(110);
    } finally {
      await started.database.query("ALTER TABLE away RENAME TO request_buckets");
    }
    // It is asked again with the next beat.
    await until(async () => {
      await first.call("GET", "/v1/tiers");
      const rows = await started.database.query<{ updated: boolean }>(
        "SELECT updated_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 3000 AS updated FROM request_buckets",
      );
      return rows[0]?.updated === true;
    });
  });
});
