import { afterEach, beforeEach, expect, test } from "bun:test";
import { createIds, systemRandom } from "../../src/base/ids.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { Webhook } from "../../src/notify/webhook.ts";
import { FakeClock } from "../support/clock.ts";

interface Posted {
  readonly id: string | null;
  readonly timestamp: string | null;
  readonly body: { readonly type: string; readonly timestamp: string; readonly data: object };
}

let posted: Posted[];
let answers: (() => Response | Promise<Response>)[];
let server: ReturnType<typeof Bun.serve>;
let clock: FakeClock;
let said: object[];
let webhook: Webhook;

beforeEach(() => {
  posted = [];
  answers = [];
  said = [];
  clock = new FakeClock();
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      posted.push({
        id: request.headers.get("webhook-id"),
        timestamp: request.headers.get("webhook-timestamp"),
        body: (await request.json()) as Posted["body"],
      });
      return (answers.shift() ?? (() => new Response("ok")))();
    },
  });
  const log: Log = { ...silentLog, error: (message, fields) => void said.push({ message, ...fields }) };
  const url = `http://hook:s3cret@127.0.0.1:${server.port}/path?key=s3cret`;
  webhook = new Webhook({ url, clock, ids: createIds(clock, systemRandom), log });
});
afterEach(async () => {
  const closed = webhook.close();
  clock.advance(60_000);
  await closed;
  await server.stop(true);
});

/** Lets the network have its turns, and the clock move on, until it is so. */
async function until(holds: () => boolean, stepMs = 0): Promise<void> {
  for (let turn = 0; turn < 2_000 && !holds(); turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (stepMs > 0) clock.advance(stepMs);
  }
  expect(holds()).toBe(true);
}

test("a notice is posted as its type, its time and its data", async () => {
  webhook.post({ type: "limit.exceeded", data: { workspace: "default" } });
  await until(() => posted.length === 1);
  expect(posted[0]?.body).toEqual({
    type: "limit.exceeded",
    timestamp: "2026-01-02T03:04:05.000Z",
    data: { workspace: "default" },
  });
  expect(posted[0]?.id).toStartWith("msg_");
  expect(posted[0]?.timestamp).toBe(String(Date.UTC(2026, 0, 2, 3, 4, 5) / 1000));
});

test("one that is not taken is sent again, under the same id, and then the next", async () => {
  answers.push(
    () => new Response(null, { status: 500 }),
    () => Response.redirect("http://127.0.0.1:9/", 307),
  );
  webhook.post({ type: "a", data: {} });
  webhook.post({ type: "b", data: {} });
  await until(() => posted.length === 4, 500);
  expect(posted.map(({ body }) => body.type)).toEqual(["a", "a", "a", "b"]);
  expect(new Set(posted.slice(0, 3).map(({ id }) => id)).size).toBe(1);
  expect(posted[3]?.id).not.toBe(posted[0]?.id);
});

test("one that is never taken is given up, and the log says so without the URL's secrets", async () => {
  for (let tries = 0; tries < 4; tries++) answers.push(() => new Response(null, { status: 503 }));
  webhook.post({ type: "a", data: {} });
  await until(() => said.length === 1, 1_000);
  expect(posted).toHaveLength(4);
  expect(JSON.stringify(said)).not.toContain("s3cret");
  expect(said[0]).toMatchObject({ type: "a", problem: "it answered 503" });
});

test("one that hangs is given up after its time", async () => {
  answers.push(() => new Promise<Response>(() => {}));
  webhook.post({ type: "a", data: {} });
  await until(() => posted.length === 1);
  await until(() => posted.length === 2, 1_000);
});

test("of those that replace one another, the newest alone is sent", async () => {
  answers.push(async () => {
    await until(() => replaced);
    return new Response("ok");
  });
  let replaced = false;
  webhook.post({ type: "first", data: {} });
  await until(() => posted.length === 1);
  for (let size = 1; size <= 5; size++) webhook.post({ type: "c", data: { size }, replaces: "c" });
  webhook.post({ type: "other", data: {} });
  replaced = true;
  await until(() => posted.length === 3);
  expect(posted.slice(1).map(({ body }) => [body.type, body.data])).toEqual([
    ["c", { size: 5 }],
    ["other", {}],
  ]);
});

test("too many that wait are dropped, and the log says so once", async () => {
  answers.push(() => new Promise<Response>(() => {}));
  for (let count = 0; count < 300; count++) webhook.post({ type: "a", data: { count } });
  expect(said).toHaveLength(1);
  expect(JSON.stringify(said)).not.toContain("s3cret");
});
