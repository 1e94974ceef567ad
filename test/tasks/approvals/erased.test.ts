/**
 * The arguments of a waiting call are erased: nobody can see them any more, so nobody can approve the call as it was,
 * and nobody is told to review it again.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { ownConnection } from "../../support/own-connection.ts";
import { ended } from "../support.ts";
import { type ApprovalStage, type Asked, startApprovals } from "./support.ts";

setDefaultTimeout(60_000);

const ERASED: [number, string] = [409, "approval_erased"];

let stage: ApprovalStage;
let asked: Asked;
beforeEach(async () => {
  stage = await startApprovals({}, { isOnFiles: true });
  asked = await stage.ask();
  const file = ownConnection(stage.gateway.dataDir);
  expect(file.run('DELETE FROM payloads WHERE body = \'{"to":"all"}\'').changes).toBe(1);
});
afterEach(() => stage.stop());

async function decide(body: object): Promise<[number, string]> {
  const answer = await stage.decide(asked.path, body);
  return [answer.status, answer.body.code ?? answer.body.status];
}

/** Changes the tool's description and schema. */
async function changeTool(): Promise<void> {
  const inputSchema = { type: "object", properties: { to: { type: "string" } } };
  stage.tools.list([{ name: "send", description: "Sends it.", inputSchema }]);
  expect((await stage.gateway.call("POST", "/v1/connectors/up/refresh")).status).toBe(200);
}

test("it cannot be approved unchanged, however often it is tried, but can be denied", async () => {
  for (const more of [{}, { arguments_hash: asked.arguments_hash }]) {
    expect(await decide({ decision: "approve", ...more })).toEqual(ERASED);
  }
  const { body } = await stage.decide(asked.path, { decision: "approve" });
  expect(body.detail).toContain("Deny the call, or approve it with arguments of your own.");
  expect(await decide({ decision: "deny" })).toEqual([200, "denied"]);
  await ended(stage.gateway, asked.task);
  expect(stage.tools.calls).toEqual([]);
});

test("it can be approved with other arguments, and is called with them", async () => {
  expect(await decide({ decision: "approve", arguments: { to: "one" } })).toEqual([200, "approved"]);
  await ended(stage.gateway, asked.task);
  expect(stage.tools.calls).toEqual([{ name: "send", input: { to: "one" } }]);
});

test.each([{}, { arguments: { to: "one" } }])(
  "if its tool has changed too, it is denied or expires: the request to review it again is not sent (%j)",
  async (more) => {
    await changeTool();
    for (let again = 0; again < 2; again++) {
      const { status, body } = await stage.decide(asked.path, { decision: "approve", ...more });
      expect([status, body.code]).toEqual(ERASED);
      expect(body.detail).toMatch(/Deny/);
      expect(body.detail).not.toContain("Review");
    }
    expect(await decide({ decision: "deny" })).toEqual([200, "denied"]);
    expect((await ended(stage.gateway, asked.task)).status).toBe("succeeded");
    expect(stage.tools.calls).toEqual([]);
  },
);
