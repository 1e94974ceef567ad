import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Webhook as Verifier } from "standardwebhooks";
import { createIds, systemRandom } from "../../src/base/ids.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { localNodes } from "../../src/nodes/local-nodes.ts";
import {
  type Delivery,
  KEPT_LIMIT,
  listDeliveries,
  PENDING_LIMIT,
  redeliver,
} from "../../src/notify/deliveries.ts";
import { encodeSecret } from "../../src/notify/signature.ts";
import { RETRY_AFTER_LIMIT_MS, RETRY_MS, Webhook, type WebhookNotice } from "../../src/notify/webhook.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { FakeClock } from "../support/clock.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";
import { type FakeReceiver, startReceiver, until } from "./support.ts";

const SECRET = new Uint8Array(32).fill(7);

let receiver: FakeReceiver;
let directory: ReturnType<typeof tempDir>;
let db: SqliteDb;
let clock: FakeClock;
let said: object[];
let webhook: Webhook;
/** How many random bytes were drawn. */
let drawn: number;

beforeEach(async () => {
  receiver = startReceiver();
  directory = tempDir();
  // The verifier uses the machine's own clock.
  clock = new FakeClock(Date.now());
  said = [];
  drawn = 0;
  db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS, rerunWork: true });
  for (const id of [1, 2]) {
    await db.run("INSERT INTO workspaces (id, name, created_at) VALUES ($1, $2, 0)", [id, `w${id}`]);
  }
  webhook = open();
});
afterEach(async () => {
  await close(webhook);
  await db.close();
  await receiver.close();
  directory.remove();
});

function open(): Webhook {
  const log: Log = { ...silentLog, error: (message, fields) => void said.push({ message, ...fields }) };
  const ids = createIds(clock, systemRandom);
  const random = (bytes: Uint8Array) => void bytes.fill(drawn);
  const instance = "0123456789abcdef";
  const nodes = localNodes("node_1", clock);
  return new Webhook({ instance, url: receiver.url, secret: SECRET, db, clock, ids, random, log, nodes });
}

async function close(which: Webhook): Promise<void> {
  const closed = which.close();
  await Promise.resolve();
  clock.advance(60_000);
  await closed;
}

const notice = (
  type: WebhookNotice["type"] = "task.finished",
  data: object = {},
  workspaceId = 1,
): WebhookNotice => ({
  workspaceId,
  type,
  data,
});

const log = (workspaceId = 1): Promise<Delivery[]> => listDeliveries(db, workspaceId, 200, undefined);

/** The newest row of the delivery log, once it has this state. */
async function settled(status: string, attempts: number): Promise<Delivery> {
  let found: Delivery | undefined;
  await until(async () => {
    [found] = await log();
    return found?.status === status && found.attempts === attempts;
  });
  if (!found) throw new Error("nothing was logged");
  return found;
}

test("a notice is posted as its type, its time and its data, with a signature that others verify", async () => {
  const now = clock.now();
  webhook.post(notice("limit.exceeded", { workspace: "default" }));
  await until(() => receiver.posted.length === 1);
  const [posted] = receiver.posted;
  expect(posted?.body).toEqual({
    type: "limit.exceeded",
    timestamp: new Date(now).toISOString(),
    data: { workspace: "default" },
  });
  const headers = posted?.headers ?? {};
  expect(headers["webhook-id"]).toStartWith("msg_");
  expect(headers["webhook-timestamp"]).toBe(String(Math.floor(now / 1000)));
  const verifier = new Verifier(encodeSecret(SECRET));
  expect(verifier.verify(posted?.text ?? "", headers)).toEqual(posted?.body);
  expect(() => verifier.verify(`${posted?.text} `, headers)).toThrow();
  expect(() => verifier.verify(posted?.text ?? "", { ...headers, "webhook-id": "msg_other" })).toThrow();
  const other = new Verifier(encodeSecret(new Uint8Array(32)));
  expect(() => other.verify(posted?.text ?? "", headers)).toThrow();
  expect(await settled("delivered", 1)).toMatchObject({ lastStatus: 200, lastError: null, nextAt: null });
});

test("a notice whose transaction is rolled back is not sent", async () => {
  const failed = db.tx(1, async (tx) => {
    await webhook.write(tx, notice());
    throw new Error("taken back");
  });
  await expect(failed).rejects.toThrow("taken back");
  webhook.post(notice("limit.exceeded"));
  await settled("delivered", 1);
  expect(receiver.posted.map(({ body }) => body.type)).toEqual(["limit.exceeded"]);
});

test("a refused notice is sent again, with the same id and the time of the attempt", async () => {
  receiver.answers.push(
    () => new Response("s3cret", { status: 500 }),
    () => Response.redirect("http://127.0.0.1:9/", 307),
  );
  webhook.post(notice());
  const first = await settled("pending", 1);
  expect(first).toMatchObject({ lastStatus: 500, lastError: "it answered 500" });
  expect(first.nextAt).toBe(clock.now() + (RETRY_MS[0] ?? 0));
  await until(async () => {
    // Only while the delivery waits: moving the clock far during an attempt would time it out. The timer may be set
    // only after the delivery was written.
    const [{ nextAt } = { nextAt: null }] = await log();
    if (nextAt !== null) clock.advance(Math.max(1, nextAt - clock.now()));
    return receiver.posted.length === 3;
  });
  await settled("delivered", 3);
  expect(new Set(receiver.posted.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  const times = receiver.posted.map(({ headers }) => Number(headers["webhook-timestamp"]));
  expect(times[1]).toBeGreaterThan(times[0] ?? 0);
  const verifier = new Verifier(encodeSecret(SECRET));
  for (const { text, headers } of receiver.posted) verifier.verify(text, headers);
});

test("a notice that is never accepted is abandoned after hours, and neither log shows the URL's secrets", async () => {
  const tries = RETRY_MS.length + 1;
  for (let attempt = 0; attempt < tries; attempt++) {
    receiver.answers.push(() => new Response("s3cret", { status: 503 }));
  }
  const began = clock.now();
  webhook.post(notice());
  for (let attempt = 1; attempt < tries; attempt++) {
    const { nextAt } = await settled("pending", attempt);
    clock.advance((nextAt ?? 0) - clock.now());
    await until(() => {
      // The next check is scheduled a moment after the attempt appears in the log.
      clock.advance(1);
      return receiver.posted.length > attempt;
    });
  }
  const last = await settled("failed", tries);
  expect(last).toMatchObject({ lastStatus: 503, nextAt: null });
  expect(clock.now() - began).toBeGreaterThan(12 * 3_600_000);
  await until(() => said.length === 1);
  expect(said[0]).toMatchObject({ type: "task.finished", problem: "it answered 503" });
  expect(JSON.stringify([said, await log()])).not.toContain("s3cret");
});

test("a notice answered with 410 is not sent again", async () => {
  receiver.answers.push(() => new Response(null, { status: 410 }));
  webhook.post(notice());
  expect(await settled("failed", 1)).toMatchObject({ lastStatus: 410 });
});

test("a redelivery requested during an attempt is sent, whatever the attempt's result", async () => {
  const held = Promise.withResolvers<Response>();
  const heldAgain = Promise.withResolvers<Response>();
  receiver.answers.push(
    () => new Response(null, { status: 500 }),
    () => held.promise,
    () => heldAgain.promise,
  );
  webhook.post(notice());
  await until(() => receiver.posted.length === 1);
  await settled("pending", 1);
  await until(() => {
    clock.advance(1_000);
    return receiver.posted.length === 2;
  });
  const [{ id } = { id: "" }] = await log();
  await db.tx(1, (tx) => redeliver(tx, 1, id, clock.now()));
  // The receiver wants no more, but the person who requested another delivery overrides that.
  held.resolve(new Response(null, { status: 410 }));
  await settled("pending", 2);
  heldAgain.resolve(new Response("ok"));
  await settled("delivered", 3);
});

describe("when a notice is sent again", () => {
  const OWN = RETRY_MS[0] ?? 0;
  const table: [says: string, header: (now: number) => string | null, waits: number][] = [
    ["nothing", () => null, OWN],
    ["less than the pause", () => "1", OWN],
    ["seconds", () => "120", 120_000],
    ["a date", (now) => new Date(Math.ceil(now / 1000) * 1000 + 90_000).toUTCString(), 90_000],
    ["a date in the past", (now) => new Date(now - 90_000).toUTCString(), OWN],
    ["forever", () => "9999999999", RETRY_AFTER_LIMIT_MS],
    ["a negative time", () => "-5", OWN],
    ["an invalid time", () => "soon 7", OWN],
  ];
  test.each(table)(
    "and the receiver asks for %s in Retry-After, it waits accordingly",
    async (_says, of, waits) => {
      clock.setWall(Math.ceil(clock.now() / 1000) * 1000);
      const header = of(clock.now());
      const headers = header === null ? {} : { "retry-after": header };
      receiver.answers.push(() => new Response("later", { status: 503, headers }));
      webhook.post(notice());
      const { attemptedAt, nextAt } = await settled("pending", 1);
      expect((nextAt ?? 0) - (attemptedAt ?? 0)).toBe(waits);
      clock.advance(waits - 100);
      expect(receiver.posted).toHaveLength(1);
      await until(() => {
        clock.advance(1);
        return receiver.posted.length === 2;
      });
      await settled("delivered", 2);
    },
  );

  test("jitter adds up to a fifth of the pause, and never subtracts", async () => {
    const waits: number[] = [];
    for (const byte of [0, 128, 255]) {
      drawn = byte;
      receiver.answers.push(() => new Response(null, { status: 500 }));
      webhook.post(notice());
      await until(async () => (await log()).length === waits.length + 1);
      const { attemptedAt, nextAt } = await settled("pending", 1);
      waits.push((nextAt ?? 0) - (attemptedAt ?? 0));
    }
    expect(waits).toEqual([OWN, Math.floor(OWN * (1 + 0.2 * (0x8080 / 65_536))), OWN * 1.2 - 1]);
  });

  test("a receiver that answers 410 with Retry-After is not asked again", async () => {
    receiver.answers.push(() => new Response(null, { status: 410, headers: { "retry-after": "5" } }));
    webhook.post(notice());
    expect(await settled("failed", 1)).toMatchObject({ nextAt: null });
  });
});

describe("a workspace does not delay another's notices", () => {
  test("while all of its own hang", async () => {
    const hangs = Array.from({ length: 20 }, () => Promise.withResolvers<Response>());
    receiver.answers.push(
      ...hangs.slice(0, 8).map(
        ({ promise }) =>
          () =>
            promise,
      ),
    );
    for (let count = 0; count < 20; count++) webhook.post(notice());
    await until(() => receiver.posted.length === 8);
    webhook.post(notice("limit.exceeded", {}, 2));
    await until(async () => (await log(2))[0]?.status === "delivered");
    expect(receiver.posted).toHaveLength(9);
    for (const { resolve } of hangs) resolve(new Response("ok"));
    await until(async () => (await log()).every(({ status }) => status === "delivered"));
    expect(receiver.posted).toHaveLength(21);
    expect(new Set(receiver.posted.map(({ headers }) => headers["webhook-id"])).size).toBe(21);
  });

  test("with an older backlog of thousands", async () => {
    await db.run(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
       INSERT INTO webhook_deliveries (workspace_id, id, type, body, created_at, status, attempts, tries, next_at)
       SELECT 1, 'msg_' || i, 'task.finished', '{"type":"task.finished","data":{}}', 0, 'pending', 1, 1, 1 FROM n
       UNION ALL SELECT 2, 'msg_' || i, 'limit.exceeded', '{"type":"limit.exceeded","data":{}}', 0, 'pending', 1, 1, 2
       FROM n WHERE i <= 10`,
    );
    const rows = await db.all<{ workspace_id: number; id: string }>(
      "SELECT workspace_id, id FROM webhook_deliveries",
    );
    await db.tx(1, async (tx) => {
      for (const row of rows) await tx.seals.seal(tx, "webhook_deliveries", row);
    });
    webhook.wake();
    await until(() => receiver.posted.length >= 100);
    const first = receiver.posted.slice(0, 100).filter(({ body }) => body.type === "limit.exceeded");
    expect(first).toHaveLength(10);
  });
});

test("none of many is lost or sent twice, although more arrive during sending", async () => {
  for (let count = 0; count < 300; count++) {
    webhook.post(notice("task.finished", { count }, 1 + (count % 2)));
    if (count % 50 === 0) webhook.wake();
    if (count % 20 === 0) await Promise.resolve();
  }
  await until(() => receiver.posted.length >= 300);
  await close(webhook);
  expect(
    receiver.posted.map(({ body }) => body.data.count).toSorted((a, b) => Number(a) - Number(b)),
  ).toEqual(Array.from({ length: 300 }, (_, count) => count));
});

test("an attempt that hangs is abandoned after its timeout", async () => {
  receiver.answers.push(() => new Promise<Response>(() => {}));
  webhook.post(notice());
  await until(() => receiver.posted.length === 1);
  clock.advance(15_000);
  expect(await settled("pending", 1)).toMatchObject({
    lastStatus: null,
    lastError: "it did not answer in time",
  });
});

test("undelivered notices are delivered by the next process", async () => {
  receiver.answers.push(() => new Response(null, { status: 500 }));
  webhook.post(notice("task.finished", { task: "a" }));
  const { id, nextAt } = await settled("pending", 1);
  await close(webhook);
  expect(receiver.posted).toHaveLength(1);
  clock.advance((nextAt ?? 0) - clock.now() + 1);
  webhook = open();
  webhook.wake();
  await settled("delivered", 2);
  expect(receiver.posted[1]?.headers["webhook-id"]).toBe(id);
});

test("a clock set forward is noticed", async () => {
  receiver.answers.push(() => new Response(null, { status: 500 }));
  webhook.post(notice());
  await settled("pending", 1);
  clock.setWall(clock.now() + 3_600_000);
  clock.advance(60_000);
  await settled("delivered", 2);
});

test("of notices that replace one another, only the newest is sent, in each workspace", async () => {
  let isOpen = false;
  receiver.answers.push(async () => {
    await until(() => isOpen);
    return new Response("ok");
  });
  webhook.post(notice("task.finished"));
  await until(() => receiver.posted.length === 1);
  for (let size = 1; size <= 5; size++) {
    webhook.post({ ...notice("ledger.checkpoint", { size }), replaces: true });
    webhook.post({ ...notice("ledger.checkpoint", { size }, 2), replaces: true });
  }
  await until(async () => (await log(2)).length === 5);
  isOpen = true;
  await until(() => receiver.posted.length === 3);
  expect(receiver.posted.slice(1).map(({ body }) => body.data)).toEqual([{ size: 5 }, { size: 5 }]);
  expect((await log(2)).map(({ status }) => status).slice(1)).toEqual(new Array(4).fill("replaced"));
});

test("too many queued notices are dropped, and this is logged once", async () => {
  await db.run(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
     INSERT INTO webhook_deliveries (workspace_id, id, type, body, created_at, status, attempts, tries, next_at)
     SELECT 1, 'msg_' || i, 'task.finished', '{}', 0, 'pending', 1, 1, $2 FROM n`,
    [PENDING_LIMIT, clock.now() + 3_600_000],
  );
  for (let count = 0; count < 3; count++) webhook.post(notice());
  webhook.post(notice("task.finished", {}, 2));
  await until(() => receiver.posted.length === 1);
  expect(said).toHaveLength(1);
  const rows = await db.get<{ count: number }>(
    "SELECT COUNT(*) AS count FROM webhook_deliveries WHERE workspace_id = 1",
  );
  expect(rows?.count).toBe(PENDING_LIMIT);
});

test("the newest finished deliveries are kept", async () => {
  await db.run(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
     INSERT INTO webhook_deliveries (workspace_id, id, type, body, created_at, status, attempts, tries)
     SELECT 1, 'msg_0' || i, 'task.finished', '{}', 0, 'delivered', 1, 1 FROM n`,
    [KEPT_LIMIT + 100],
  );
  webhook.post(notice());
  await until(async () => {
    const rows = await db.get<{ count: number }>("SELECT COUNT(*) AS count FROM webhook_deliveries");
    return rows?.count === KEPT_LIMIT;
  });
});
