/** People's decisions, and their consequences. */
import { afterEach, describe, expect, test } from "bun:test";
import { FakeClock } from "../../support/clock.ts";
import { allEvents } from "../../support/events.ts";
import { dispatch, ended, ledger, openEvents, unsettled, until } from "../support.ts";
import { type ApprovalStage, startApprovals } from "./support.ts";

const HOUR = 3_600_000;
let stage: ApprovalStage;
afterEach(() => stage.stop());

const person = (name: string, role?: string) =>
  stage.gateway.token({ scopes: ["approvals:write"], person: name, ...(role ? { role } : {}) });
const oversight = async () =>
  (await ledger(stage.gateway)).filter(({ action }) => action.startsWith("oversight.")) as never as {
    seq: number;
    outcome: string;
    action: string;
    input_hash?: string;
    output_hash?: string;
    oversight: Record<string, unknown>;
  }[];

describe("nobody decides", () => {
  test.each([
    [24, {}],
    [2, { more: "approvals: { expire_hours: 2 }" }],
  ])("for %d hours: the call counts as denied, and the model is told", async (hours, settings) => {
    const clock = new FakeClock();
    stage = await startApprovals({}, { clock, ...settings });
    const asked = await stage.ask();
    clock.setWall(clock.now() + hours * HOUR - 1);
    expect((await stage.task(asked.task)).status).toBe("awaiting_approval");
    clock.setWall(clock.now() + 1);
    // This holds even before the gateway has noticed that the approval expired.
    const late = await stage.decide(asked.path, { decision: "approve" });
    expect([late.status, late.body.code]).toEqual([409, "approval_decided"]);
    clock.advance(5_000);
    const task = await ended(stage.gateway, asked.task);
    expect(task).toMatchObject({ status: "succeeded", output: expect.stringContaining("in time") });
    expect(task.tools_called).toMatchObject([{ status: "denied" }]);
    expect(stage.tools.calls).toEqual([]);
    const entries = await oversight();
    const expired = entries.find(({ action }) => action === "oversight.expire");
    expect(expired).toMatchObject({
      outcome: "denied",
      oversight: { person: "nobody", decision: "expire", arguments_hash: asked.arguments_hash },
    });
  });
});

describe("two people", () => {
  test("must approve: the same person counts only once, however the name is written", async () => {
    stage = await startApprovals({ approvals_required: 2 });
    const asked = await stage.ask();
    const first = await stage.decide(asked.path, { decision: "approve" }, await person("Ann Lee"));
    expect([first.status, first.body.status]).toEqual([200, "pending"]);
    for (const name of ["Ann Lee", " ann  lee", "ANN LEE"]) {
      const again = await stage.decide(asked.path, { decision: "approve" }, await person(name));
      expect([again.status, again.body.code]).toEqual([409, "approval_decided"]);
    }
    expect(stage.tools.calls).toEqual([]);
    const second = await stage.decide(asked.path, { decision: "approve" }, await person("Bo", "lead"));
    expect([second.status, second.body.status]).toEqual([200, "approved"]);
    await ended(stage.gateway, asked.task);
    expect(stage.tools.calls).toHaveLength(1);
  });

  test("one denial is enough", async () => {
    stage = await startApprovals({ approvals_required: 2 });
    const asked = await stage.ask();
    await stage.decide(asked.path, { decision: "approve" }, await person("Ann"));
    expect((await stage.decide(asked.path, { decision: "deny" }, await person("Bo"))).body.status).toBe(
      "denied",
    );
    await ended(stage.gateway, asked.task);
    expect(stage.tools.calls).toEqual([]);
  });

  test("other arguments void earlier approvals, and are approved only by their hash", async () => {
    stage = await startApprovals({ approvals_required: 2 });
    const asked = await stage.ask();
    const [ann, bo] = [await person("Ann"), await person("Bo")];
    await stage.decide(asked.path, { decision: "approve" }, ann);
    const changed = await stage.decide(asked.path, { decision: "approve", arguments: { to: "one" } }, bo);
    expect([changed.status, changed.body.status]).toEqual([200, "pending"]);
    for (const hash of [{}, { arguments_hash: asked.arguments_hash }]) {
      const stale = await stage.decide(asked.path, { decision: "approve", ...hash }, ann);
      expect([stale.status, stale.body.code]).toEqual([409, "approval_changed"]);
    }
    const [now] = await stage.pending();
    expect(now).toMatchObject({ arguments: { to: "one" } } as object);
    const own = await stage.decide(
      asked.path,
      { decision: "approve", arguments_hash: now?.arguments_hash },
      bo,
    );
    expect(own.status).toBe(409);
    const settled = await stage.decide(
      asked.path,
      { decision: "approve", arguments_hash: now?.arguments_hash },
      ann,
    );
    expect(settled.body.status).toBe("approved");
    await ended(stage.gateway, asked.task);
    expect(stage.tools.calls).toEqual([{ name: "send", input: { to: "one" } }]);
  });

  test("who approve at the same time count one after the other", async () => {
    stage = await startApprovals();
    const asked = await stage.ask();
    const tokens = await Promise.all(["Ann", "Bo", "Cy", "Di"].map((name) => person(name)));
    const answers = await Promise.all(
      tokens.map((token, index) =>
        stage.decide(asked.path, { decision: index % 2 ? "deny" : "approve" }, token),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409]);
    await ended(stage.gateway, asked.task);
    const approved = answers.find(({ status }) => status === 200)?.body.status === "approved";
    expect(stage.tools.calls).toHaveLength(approved ? 1 : 0);
  });
});

test("the call uses the other arguments, and evidence and stream show both", async () => {
  stage = await startApprovals();
  const asked = await stage.ask();
  const token = await person("Ann", "lead");
  const body = { decision: "approve", reason: "one is enough", arguments: { to: "one", copies: 1 } };
  expect((await stage.decide(asked.path, body, token)).body.status).toBe("approved");
  const task = await ended(stage.gateway, asked.task);
  expect(stage.tools.calls).toEqual([{ name: "send", input: { to: "one", copies: 1 } }]);
  expect(task.tools_called).toMatchObject([{ arguments: { to: "one", copies: 1 }, status: "succeeded" }]);
  const [entry] = await oversight();
  const entries = await ledger(stage.gateway);
  const shown = entries.find(({ outcome }) => outcome === "pending") as never as {
    seq: number;
    input_hash: string;
  };
  expect(shown.input_hash).toBe(asked.arguments_hash);
  expect(entry).toMatchObject({
    action: "oversight.approve",
    oversight: {
      person: "Ann",
      role: "lead",
      decision: "change",
      presented_at: expect.any(String),
      decided_at: expect.any(String),
      target_seq: shown.seq,
      arguments_hash: entry?.input_hash,
      reason_hash: entry?.output_hash,
    },
  });
  expect(Object.keys(entry?.oversight ?? {}).toSorted()).toEqual([
    ...[
      "arguments_hash",
      "decided_at",
      "decision",
      "person",
      "presented_at",
      "reason_hash",
      "role",
      "target_seq",
    ],
  ]);
  const intent = entries.find(({ action, phase }) => action === "tool.call" && phase === "intent");
  const { arguments_hash } = entry?.oversight ?? {};
  expect(intent?.detail).toEqual({ approval_seq: entry?.seq, arguments_hash, call: expect.any(String) });
  expect(unsettled(entries)).toEqual([]);
  const events = await allEvents(await openEvents(stage.gateway, asked.task));
  const shownArguments = events.filter(({ data }) => "arguments" in data).map(({ data }) => data.arguments);
  expect(shownArguments).toEqual([{ to: "all" }, { to: "all" }, { to: "one", copies: 1 }]);
});

test("of several calls in one answer, only those that need approval wait, in order", async () => {
  const calls = [
    { name: "time__now", arguments: {} },
    { name: "up__send", arguments: { to: "a" } },
    { name: "up__send", arguments: { to: "b" } },
  ];
  stage = await startApprovals({}, {}, calls);
  const id = await dispatch(stage.gateway, { agent: "careful", tools: ["up.send", "time.now"] });
  await until(async () => (await stage.pending()).length === 1);
  const [first] = await stage.pending();
  expect((await stage.task(id)).tools_called).toMatchObject([{ tool: "time.now", status: "succeeded" }]);
  await stage.decide(first?.path ?? "", { decision: "deny" });
  await until(async () => (await stage.pending()).some(({ call_id }) => call_id !== first?.call_id));
  const [second] = await stage.pending();
  await stage.decide(second?.path ?? "", { decision: "approve" });
  const task = await ended(stage.gateway, id);
  expect(task.tools_called.map(({ status }: { status: string }) => status)).toEqual([
    "succeeded",
    "denied",
    "succeeded",
  ]);
  expect(stage.tools.calls).toEqual([{ name: "send", input: { to: "b" } }]);
  // The model was asked twice. The waiting call did not ask it again.
  expect(stage.upstream.requests).toHaveLength(2);
});

test("a waiting task holds no slot", async () => {
  stage = await startApprovals({}, { limits: { concurrent_tasks: 1, enforcement: "enforced" } });
  const first = await stage.ask();
  const second = await stage.ask();
  expect((await stage.gateway.call("GET", "/v1/workspace")).body.usage).toMatchObject({ tasks_running: 0 });
  for (const { path } of [second, first]) await stage.decide(path, { decision: "approve" });
  for (const { task } of [first, second]) expect((await ended(stage.gateway, task)).status).toBe("succeeded");
});

test("the list has pages, newest first", async () => {
  stage = await startApprovals();
  const asked = [await stage.ask(), await stage.ask(), await stage.ask()].map(({ task }) => task).reverse();
  const seen: string[] = [];
  for (let cursor = ""; seen.length < 10; ) {
    const { body } = await stage.gateway.call("GET", `/v1/approvals?limit=1${cursor}`);
    seen.push(...body.data.map(({ task }: { task: string }) => task));
    if (body.next_cursor === null) break;
    cursor = `&cursor=${body.next_cursor}`;
  }
  expect(seen).toEqual(asked);
});

describe("changes while it waited:", () => {
  test("a missing tool is not called, and the model is told", async () => {
    stage = await startApprovals();
    const asked = await stage.ask();
    expect((await stage.gateway.call("DELETE", "/v1/connectors/up")).status).toBe(204);
    await stage.decide(asked.path, { decision: "approve" });
    const task = await ended(stage.gateway, asked.task);
    expect(task).toMatchObject({ status: "succeeded", tools_called: [{ status: "denied" }] });
    expect(stage.tools.calls).toEqual([]);
    expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  });

  test("a denied call is not made even if it no longer needs approval", async () => {
    stage = await startApprovals();
    const asked = await stage.ask();
    await stage.gateway.call("PATCH", "/v1/agents/careful", { body: { approvals: [] } });
    await stage.decide(asked.path, { decision: "deny" });
    expect((await ended(stage.gateway, asked.task)).tools_called).toMatchObject([{ status: "denied" }]);
    expect(stage.tools.calls).toEqual([]);
  });

  test.each([
    ["POST", "/v1/agents/careful/stop"],
    ["DELETE", "/v1/agents/careful"],
  ])("%s %s withdraws the request", async (method, path) => {
    stage = await startApprovals();
    const asked = await stage.ask();
    expect((await stage.gateway.call(method, path)).status).toBeLessThan(300);
    const late = await stage.decide(asked.path, { decision: "approve" });
    expect([late.status, late.body.code]).toEqual([409, "approval_decided"]);
    expect((await stage.task(asked.task)).status).toBe("cancelled");
    expect(stage.tools.calls).toEqual([]);
  });
});

test("it waits across restarts, and its events keep their ids and order", async () => {
  stage = await startApprovals();
  const asked = await stage.ask();
  await stage.restart();
  expect((await stage.task(asked.task)).status).toBe("awaiting_approval");
  await stage.restart();
  const reader = openEvents(stage.gateway, asked.task);
  expect(
    (await stage.decide(asked.path, { decision: "approve", arguments_hash: asked.arguments_hash })).status,
  ).toBe(200);
  const task = await ended(stage.gateway, asked.task);
  expect(task).toMatchObject({ status: "succeeded", tools_called: [{ status: "succeeded" }] });
  expect(stage.tools.calls).toHaveLength(1);
  const events = await allEvents(await reader);
  expect(events.map(({ event }) => event)).toEqual([
    ...["task.created", "task.started", "output.delta", "tool.call", "approval.required", "approval.decided"],
    ...["tool.result", "output.delta", "task.finished"],
  ]);
  const ids = events.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
  expect(stage.upstream.requests).toHaveLength(2);
});
