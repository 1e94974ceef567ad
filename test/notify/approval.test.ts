/** The webhook reports that a person has to decide, but nothing about the call's content. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { Webhook as Verifier } from "standardwebhooks";
import { encodeSecret } from "../../src/notify/signature.ts";
import { type ApprovalStage, startApprovals } from "../tasks/approvals/support.ts";
import { dispatch, ended } from "../tasks/support.ts";
import { type FakeReceiver, startReceiver, until } from "./support.ts";

setDefaultTimeout(60_000);

const SECRET = encodeSecret(new Uint8Array(32).fill(7));

let receiver: FakeReceiver;
let stage: ApprovalStage;
beforeEach(async () => {
  receiver = startReceiver("approval.required");
  const calls = [{ name: "up__send", arguments: { to: "the secret list" } }];
  stage = await startApprovals(
    {},
    { more: `notify: { webhook: "${receiver.url}", secret: "${SECRET}" }` },
    calls,
  );
});
afterEach(async () => {
  await stage.stop();
  await receiver.close();
});

test("a call that needs no approval is not reported", async () => {
  await stage.gateway.agent("free", { approvals: [] });
  const id = await dispatch(stage.gateway, { agent: "free", tools: ["up.send"] });
  expect((await ended(stage.gateway, id)).status).toBe("succeeded");
  const listed = await stage.gateway.call("GET", "/v1/webhooks/deliveries");
  expect(listed.body.data.map(({ type }: { type: string }) => type)).not.toContain("approval.required");
  expect(receiver.posted).toEqual([]);
});

test("a waiting call is reported once, signed, with only ids and names, which suffice to decide it", async () => {
  const asked = await stage.ask();
  await until(() => receiver.posted.length === 1);
  const [posted] = receiver.posted;
  expect(posted?.body).toMatchObject({
    type: "approval.required",
    data: {
      workspace: "default",
      task: asked.task,
      call_id: asked.call_id,
      agent: "careful",
      tool: "up.send",
    },
  });
  expect(posted?.text).not.toContain("secret list");
  new Verifier(SECRET).verify(posted?.text ?? "", posted?.headers ?? {});

  const { task, call_id } = posted?.body.data ?? {};
  const denied = await stage.decide(`/v1/tasks/${task}/approvals/${call_id}`, { decision: "deny" });
  expect(denied.status).toBe(200);
  expect((await ended(stage.gateway, asked.task, stage.gateway.admin)).status).toBe("succeeded");
  expect(stage.tools.calls).toEqual([]);
  expect(receiver.posted).toHaveLength(1);
});
