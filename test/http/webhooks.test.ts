import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Webhook as Verifier } from "standardwebhooks";
import { finishedTask } from "../access/routes.ts";
import { type FakeReceiver, startReceiver, until } from "../notify/support.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let receiver: FakeReceiver;
let gateway: TestGateway;
beforeEach(async () => {
  receiver = startReceiver("task.finished");
  gateway = await startGateway({
    yaml: `notify: { webhook: "${receiver.url}" }\nledger: { checkpoint_every: 1000000, checkpoint_seconds: 86400 }`,
  });
  await gateway.agent("helper");
});
afterEach(async () => {
  await gateway.stop();
  await receiver.close();
});

/** Deliveries of the calling token's workspace, without those about checkpoints. */
async function deliveries(token = gateway.admin) {
  const { body } = await gateway.call("GET", "/v1/webhooks/deliveries", { token });
  return body.data.filter(({ type }: { type: string }) => type === "task.finished");
}

test("a finished task is reported without its texts, signed with the secret of webhook.key", async () => {
  const id = await finishedTask(gateway, "helper", "the secret plan");
  await until(() => receiver.posted.length === 1);
  const [posted] = receiver.posted;
  expect(posted?.body).toMatchObject({
    type: "task.finished",
    data: { workspace: "default", task: id, agent: "helper", status: "succeeded" },
  });
  expect(posted?.text).not.toContain("secret plan");
  const path = join(gateway.dataDir, "webhook.key");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  new Verifier(readFileSync(path, "utf8").trim()).verify(posted?.text ?? "", posted?.headers ?? {});
});

test("the log of deliveries covers the caller's own workspace, and shows none of the receiver's secrets", async () => {
  receiver.answers.push(() => new Response("s3cret", { status: 500 }));
  await finishedTask(gateway, "helper");
  await until(async () => (await deliveries())[0]?.attempts === 1);
  const [delivery] = await deliveries();
  expect(delivery).toMatchObject({
    type: "task.finished",
    status: "pending",
    attempts: 1,
    last_status: 500,
    last_error: "it answered 500",
  });
  expect(Date.parse(delivery.next_at)).toBeGreaterThan(Date.parse(delivery.last_attempt_at));
  expect(JSON.stringify(await deliveries())).not.toContain("s3cret");
  const other = await gateway.workspace("other");
  expect(await deliveries(other)).toEqual([]);
  const again = await gateway.call("POST", `/v1/webhooks/deliveries/${delivery.id}/redeliver`, {
    token: other,
  });
  expect(again.status).toBe(404);
});

test("a delivery is sent again on request, with the same id, and this is recorded", async () => {
  await finishedTask(gateway, "helper");
  await until(async () => (await deliveries())[0]?.status === "delivered");
  const [{ id }] = await deliveries();
  const weak = await gateway.token({ name: "weak", scopes: ["tasks:read"] });
  const path = `/v1/webhooks/deliveries/${id}/redeliver`;
  expect((await gateway.call("POST", path, { token: weak })).status).toBe(403);
  const again = await gateway.call("POST", path);
  expect([again.status, again.body.status]).toEqual([202, "pending"]);
  await until(async () => (await deliveries())[0]?.attempts === 2);
  expect(receiver.posted.map(({ headers }) => headers["webhook-id"])).toEqual([id, id]);
  const { body } = await gateway.call("GET", "/v1/ledger?action=webhook.redeliver");
  expect(body.data.at(-1)).toMatchObject({ outcome: "succeeded", detail: { delivery: id } });
  const unknown = await gateway.call("POST", "/v1/webhooks/deliveries/msg_x/redeliver");
  expect(unknown.status).toBe(404);
});

describe("the settings", () => {
  const read = async ({ call }: TestGateway = gateway) => {
    const { status, body } = await call("GET", "/v1/webhooks");
    expect(status).toBe(200);
    return body;
  };

  test("name the receiver, without possible credentials, and the types of notices", async () => {
    const body = await read();
    expect(body).toEqual({
      configured: true,
      url: `${new URL(receiver.url).origin}/…`,
      events: ["task.finished", "approval.required", "limit.exceeded", "budget.warning", "ledger.checkpoint"],
    });
    expect(JSON.stringify(body)).not.toMatch(/s3cret|hook|path/);
  });

  test("report a missing receiver, and a receiver without a path", async () => {
    for (const [yaml, expected] of [
      ["", { configured: false, url: null, events: [] }],
      ['notify: { webhook: "http://127.0.0.1:9/" }', { configured: true, url: "http://127.0.0.1:9" }],
    ] as const) {
      const other = await startGateway({ yaml });
      expect(await read(other)).toMatchObject(expected);
      await other.stop();
    }
  });
});
