/** Any node stores notices for the webhook, and one node at a time posts them. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { createIds, systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { Webhook } from "../../src/notify/webhook.ts";
import { type FakeReceiver, startReceiver } from "../notify/support.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";
import { type LedgerNode, type LedgerNodes, openLedgerNodes } from "./ledger-support.ts";

setDefaultTimeout(60_000);

describe.skipIf(missingPostgres !== undefined)("the webhook of two nodes", () => {
  let bench: LedgerNodes;
  let receiver: FakeReceiver;
  const webhooks: Webhook[] = [];

  beforeEach(async () => {
    receiver = startReceiver();
    bench = await openLedgerNodes();
  });
  afterEach(async () => {
    for (const answer of receiver.answers.splice(0)) answer();
    await Promise.all(webhooks.splice(0).map((webhook) => webhook.close()));
    await bench.close();
    await receiver.close();
  });

  async function open(): Promise<{ readonly node: LedgerNode; readonly webhook: Webhook }> {
    const node = await bench.open();
    const webhook = new Webhook({
      ...{ instance: "0123456789abcdef", url: receiver.url, secret: new Uint8Array(32).fill(7) },
      ...{ db: node.db, clock: systemClock, ids: createIds(systemClock, systemRandom) },
      ...{ random: systemRandom, log: silentLog, nodes: node.nodes },
    });
    webhook.wake();
    webhooks.push(webhook);
    return { node, webhook };
  }

  const notice = (n: number) => ({ workspaceId: 1, type: "task.finished", data: { n } }) as const;
  const postedNumbers = () => receiver.posted.map(({ body }) => Number(body.data.n)).sort((a, b) => a - b);
  const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
  const pending = async () =>
    (await bench.database.query("SELECT 1 FROM webhook_deliveries WHERE status = 'pending'")).length;

  test("posts each notice once, whichever node stored it", async () => {
    const both = [await open(), await open()];
    for (const n of numbers(60)) both[n % 2]?.webhook.post(notice(n));
    await until(async () => receiver.posted.length >= 60 && (await pending()) === 0);
    expect(postedNumbers()).toEqual(numbers(60));
  });

  test("goes on when the node that posted leaves, and nothing is lost", async () => {
    const [first, second] = [await open(), await open()];
    first.webhook.post(notice(0));
    await until(() => receiver.posted.length === 1);
    await first.webhook.close();
    await first.node.leave();
    for (const n of [1, 2, 3]) second.webhook.post(notice(n));
    await until(async () => receiver.posted.length >= 4 && (await pending()) === 0);
    expect(postedNumbers()).toEqual(numbers(4));
  });

  test("posts again, with the same id, what another node was still posting when it left", async () => {
    const first = await open();
    const hanging = Promise.withResolvers<Response>();
    receiver.answers.push(() => hanging.promise);
    first.webhook.post(notice(0));
    await until(() => receiver.posted.length === 1);
    const second = await open();
    await first.node.leave();
    second.webhook.post(notice(1));
    await until(async () => receiver.posted.length >= 3);
    hanging.resolve(new Response("ok"));
    await until(async () => (await pending()) === 0);
    expect(postedNumbers()).toEqual([0, 0, 1]);
    const ids = receiver.posted
      .filter(({ body }) => body.data.n === 0)
      .map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids).size).toBe(1);
  });
});
