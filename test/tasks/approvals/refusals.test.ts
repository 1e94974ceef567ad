/** Decisions that are refused: by callers without the right, or on calls that do not match. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { finishedTask } from "../../access/routes.ts";
import { FakeClock } from "../../support/clock.ts";
import { ledger } from "../support.ts";
import { type ApprovalStage, type Asked, startApprovals } from "./support.ts";

let stage: ApprovalStage;
let clock: FakeClock;
let asked: Asked;
beforeAll(async () => {
  clock = new FakeClock();
  stage = await startApprovals({}, { clock });
  asked = await stage.ask();
});
afterAll(() => stage.stop());

const approve = { decision: "approve" };
const lastDenied = async () =>
  (await ledger(stage.gateway)).filter(({ outcome }) => outcome === "denied").at(-1);

describe("a pending call is unaffected by", () => {
  test("a token without the scope", async () => {
    const token = await stage.gateway.token({ scopes: ["tasks:write", "tasks:read", "agents:write"] });
    const answer = await stage.decide(asked.path, approve, token);
    expect([answer.status, answer.body.code]).toEqual([403, "scope_missing"]);
    expect((await stage.gateway.call("GET", "/v1/approvals", { token })).status).toBe(403);
  });

  test("a token that acts as an agent, its own or another one", async () => {
    await stage.gateway.agent("other");
    for (const agent of ["careful", "other"]) {
      const token = await stage.gateway.token({ agent, scopes: ["approvals:write"] });
      for (const path of [asked.path, `/v1/tasks/${asked.task}/override`]) {
        const body = path === asked.path ? approve : { decision: "disregard", reason: "wrong" };
        const answer = await stage.decide(path, body, token);
        expect([answer.status, answer.body.code]).toEqual([403, "agent_forbidden"]);
      }
      const { body } = await stage.gateway.call("GET", "/v1/approvals", { token });
      expect(body.data.length).toBe(agent === "careful" ? 1 : 0);
    }
    expect(await lastDenied()).toMatchObject({ action: "oversight.disregard", code: "agent_forbidden" });
  });

  test("another workspace", async () => {
    const token = await stage.gateway.workspace("elsewhere");
    const answer = await stage.decide(asked.path, approve, token);
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
    expect((await stage.gateway.call("GET", "/v1/approvals", { token })).body.data).toEqual([]);
    const override = { decision: "disregard", reason: "wrong" };
    expect((await stage.decide(`/v1/tasks/${asked.task}/override`, override, token)).status).toBe(404);
  });

  test.each(["call_01kdyak348edwad4hnt8r2qeq8", "x", "%00", "..%2f"])("an unknown call %p", async (id) => {
    const answer = await stage.decide(`/v1/tasks/${asked.task}/approvals/${id}`, approve);
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
  });

  test.each([
    [{}, "/decision"],
    [{ decision: "change" }, "/decision"],
    [{ decision: "approve", reason: "" }, "/reason"],
    [{ decision: "approve", reason: 1 }, "/reason"],
    [{ decision: "approve", reason: "x".repeat(10_001) }, "/reason"],
    [{ decision: "approve", arguments: [] }, "/arguments"],
    [{ decision: "approve", arguments: {} }, "/arguments"],
    [{ decision: "approve", arguments: { to: 1 } }, "/arguments/to"],
    [{ decision: "approve", arguments: { to: "a", more: 1 } }, "/arguments"],
    [{ decision: "deny", arguments: { to: "a" } }, "/arguments"],
    [{ decision: "approve", arguments_hash: "abc" }, "/arguments_hash"],
  ])("the body %j, refused with an error at %s", async (body, path) => {
    const answer = await stage.decide(asked.path, body);
    expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
    expect(answer.body.errors[0].path).toStartWith(path);
  });

  test("a hash of other arguments", async () => {
    const answer = await stage.decide(asked.path, { ...approve, arguments_hash: "0".repeat(64) });
    expect([answer.status, answer.body.code]).toEqual([409, "approval_changed"]);
    expect(await lastDenied()).toMatchObject({
      action: "oversight.approve",
      code: "approval_changed",
      task: asked.task,
    });
  });

  test("an override before the task has ended", async () => {
    const body = { decision: "override", reason: "wrong" };
    const answer = await stage.decide(`/v1/tasks/${asked.task}/override`, body);
    expect([answer.status, answer.body.code]).toEqual([409, "task_unfinished"]);
  });

  test("all of these", async () => {
    expect(await stage.pending()).toMatchObject([{ task: asked.task, arguments_hash: asked.arguments_hash }]);
    expect(stage.tools.calls).toEqual([]);
    expect((await stage.task(asked.task)).status).toBe("awaiting_approval");
  });
});

test.each([
  ["/v1/approvals?cursor=x", "/cursor"],
  ["/v1/approvals?limit=0", "/limit"],
  ["/v1/approvals?agents=careful", ""],
])("%s is 422", async (path, field) => {
  const answer = await stage.gateway.call("GET", path);
  expect(answer.status).toBe(422);
  expect(answer.body.errors[0].path).toStartWith(field);
});

describe("an override", () => {
  let task: string;
  beforeAll(async () => {
    task = await finishedTask(stage.gateway, "other");
  });

  test.each([
    [{ decision: "override" }, "/reason"],
    [{ decision: "disregard", reason: "" }, "/reason"],
    [{ decision: "deny", reason: "x" }, "/decision"],
    [{ decision: "disregard", reason: "x", output: "y" }, "/output"],
  ])("%j is refused", async (body, path) => {
    const answer = await stage.decide(`/v1/tasks/${task}/override`, body);
    expect([answer.status, answer.body.errors?.[0].path]).toEqual([422, path]);
  });

  test("is recorded with the person, the role, the time and a hash of the reason", async () => {
    const token = await stage.gateway.token({
      scopes: ["approvals:write"],
      person: "Ann Lee",
      role: "auditor",
    });
    const body = { decision: "override", reason: "wrong sum", output: "42" };
    const answer = await stage.decide(`/v1/tasks/${task}/override`, body, token);
    expect([answer.status, answer.body.id]).toEqual([200, task]);
    const seq = answer.headers.get("gatehouse-ledger");
    const { body: entry } = await stage.gateway.call("GET", `/v1/ledger/${seq}`);
    expect(entry).toMatchObject({
      action: "oversight.override",
      outcome: "succeeded",
      task,
      agent: "other",
      oversight: {
        person: "Ann Lee",
        role: "auditor",
        decision: "override",
        decided_at: new Date(clock.now()).toISOString(),
        target_seq: expect.any(Number),
        reason_hash: entry.output_hash,
      },
    });
    expect(JSON.stringify(entry)).not.toContain("wrong sum");
  });
});
