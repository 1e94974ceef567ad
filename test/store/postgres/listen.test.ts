/** The connection that receives messages replaces itself, and knows for how long it has heard nothing. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TIMEOUTS } from "../../../src/store/postgres/limits.ts";
import { Listener } from "../../../src/store/postgres/listen.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../../support/postgres/database.ts";
import { startProxy, type TestProxy } from "../../support/postgres/proxy.ts";

describe.skipIf(missingPostgres !== undefined)("a listener", () => {
  let database: TestDatabase;
  let proxy: TestProxy;
  let listener: Listener;
  let received: string[];
  let begun = 0;
  let lost = 0;

  beforeAll(async () => {
    database = await createDatabase();
    proxy = await startProxy(database.url);
  });

  beforeEach(async () => {
    received = [];
    begun = 0;
    lost = 0;
    listener = new Listener({
      url: proxy.url,
      timeouts: { ...TIMEOUTS, connectMs: 200 },
      channel: "changes",
      onMessage: (payload) => received.push(payload),
      onListening: () => {
        begun += 1;
      },
      onLost: () => {
        lost += 1;
      },
      testMs: 20,
      deafMs: 200,
    });
    await until(() => begun === 1);
  });

  afterEach(async () => {
    proxy.resume();
    await listener.close();
  });

  afterAll(async () => {
    await proxy.close();
    await database.drop();
  });

  async function until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) await Bun.sleep(5);
  }

  const send = (payload: string) => database.query("SELECT pg_notify('changes', $1)", [payload]);

  test("receives messages in order, and none of its own tests", async () => {
    for (const payload of ["first", "second", "größer 世界", ""]) await send(payload);
    await until(() => received.length === 4);
    expect(received).toEqual(["first", "second", "größer 世界", ""]);
  });

  /** Resolves once a test has come back that was sent after this call. */
  async function tested(): Promise<void> {
    const now = performance.now();
    await until(() => performance.now() - listener.deafForMs > now);
  }

  test("has heard everything that was sent before its last test", async () => {
    await send("a stop");
    await tested();
    expect(received).toEqual(["a stop"]);
  });

  test.each([
    [
      "whose session is terminated",
      async () => {
        await database.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gatehouse' AND datname = current_database()",
        );
      },
    ],
    ["whose connection is cut", async () => proxy.cut()],
    [
      "whose packets are swallowed",
      async () => {
        proxy.swallow();
        await until(() => lost > 0);
        proxy.resume();
      },
    ],
  ])("%s listens again, and says that messages may be lost", async (_, disturb) => {
    const before = begun;
    await disturb();
    await until(() => begun > before);
    expect(lost).toBeGreaterThan(0);
    await send("afterwards");
    await until(() => received.includes("afterwards"));
    await tested();
  });

  test("is deaf for longer and longer while nothing gets through", async () => {
    await until(() => Number.isFinite(listener.deafForMs));
    proxy.swallow();
    // Whatever was on its way has arrived, or never will.
    await until(() => listener.deafForMs > 500);
    const earlier = listener.deafForMs;
    await Bun.sleep(1);
    expect(listener.deafForMs).toBeGreaterThan(earlier);
  });

  test("closes at once while it connects, and hears nothing afterwards", async () => {
    proxy.swallow();
    proxy.cut();
    await listener.close();
    proxy.resume();
    const before = begun;
    await send("too late");
    expect([begun, received]).toEqual([before, []]);
  });
});

test("a listener that does not reach the server says so, and has never heard anything", async () => {
  const refused = Promise.withResolvers<unknown>();
  const listener = new Listener({
    url: "postgres://nobody@127.0.0.1:1/nowhere",
    timeouts: TIMEOUTS,
    channel: "changes",
    onMessage: () => {},
    onListening: () => {
      throw new Error("it listens to nothing");
    },
    onLost: refused.resolve,
  });
  expect(String(await refused.promise)).toContain("ECONNREFUSED");
  expect(listener.deafForMs).toBe(Number.POSITIVE_INFINITY);
  await listener.close();
});
