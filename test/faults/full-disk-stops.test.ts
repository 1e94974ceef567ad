/** A full disk: stops and cancellations take effect, and are recorded when there is room again. */
import { beforeEach, describe, expect, test } from "bun:test";
import { addConnector, type Client, connect, request } from "../mcp/support.ts";
import { text } from "../support/scripted-mcp.ts";
import { dispatch, ended, gate, held, run, unsettled, until } from "../tasks/support.ts";
import { call, endIsRefused, entries, stage, startStage, statusOf, useFullDisk } from "./full-disk-calls.ts";

useFullDisk();

describe("a cancel takes effect", () => {
  beforeEach(async () => {
    await startStage({ limits: { concurrent_tasks: 1, enforcement: "enforced" } });
    await stage.gateway.agent("plain");
  });

  test("on a running task: its model is disconnected, and the record follows with the time of the decision", async () => {
    const hold = held();
    stage.model.script("a", hold.script);
    const id = await dispatch(stage.gateway, { agent: "plain" });
    await hold.asked;
    await stage.fill();
    const decidedAt = new Date(stage.clock.now()).toISOString();
    const cancelled = await call("POST", `/v1/tasks/${id}/cancel`);
    expect([cancelled.status, cancelled.body.status, cancelled.body.finished_at]).toEqual([
      200,
      "cancelled",
      decidedAt,
    ]);
    expect(cancelled.headers.has("gatehouse-ledger")).toBe(false);
    await until(() => stage.model.requests[0]?.aborted === true);
    // A caller that lost the answer may ask again.
    const again = await call("POST", `/v1/tasks/${id}/cancel`);
    expect([again.status, again.body.status]).toEqual([200, "cancelled"]);
    expect((await call("GET", `/v1/tasks/${id}`)).status).toBe(503);
    await stage.free();
    // The task is shown as ended before its end is written.
    expect((await call("GET", `/v1/tasks/${id}`)).body).toMatchObject({ status: "cancelled", output: null });
    expect((await call("GET", "/v1/tasks")).body.data[0].status).toBe("cancelled");
    const decisions = async () => (await entries()).filter(({ action }) => action === "task.cancel");
    expect(await decisions()).toEqual([]);
    stage.clock.advance(60_000);
    await until(async () => (await decisions()).length === 2);
    const all = await entries();
    const asked = [cancelled, again].map(({ headers }) => headers.get("gatehouse-request-id"));
    const [first, second] = asked.map((by) => all.find(({ request_id }) => request_id === by));
    for (const decision of [first, second]) {
      expect(decision).toMatchObject({
        action: "task.cancel",
        outcome: "succeeded",
        task: id,
        agent: "plain",
        oversight: { decision: "cancel", decided_at: decidedAt },
      });
    }
    expect(first?.detail?.late_ms).toBe(Date.parse(first?.ts ?? "") - Date.parse(decidedAt));
    expect(first?.detail?.late_ms).toBeGreaterThan(0);
    // The end and the decision are adjacent, because they were written in one transaction.
    const end = all.find(({ seq }) => seq === (first?.seq ?? 0) - 1);
    expect(end).toMatchObject({ action: "task.dispatch", phase: "outcome", outcome: "cancelled", task: id });
    expect(end?.detail?.late_ms).toBe(first?.detail?.late_ms);
    expect(unsettled(all)).toEqual([]);
    expect(await ended(stage.gateway, id)).toMatchObject({ status: "cancelled", finished_at: decidedAt });
    expect((await call("POST", `/v1/tasks/${id}/cancel`)).body.code).toBe("task_finished");
  });

  test("on a waiting task, which never starts", async () => {
    const hold = held();
    stage.model.script("a", hold.script);
    const first = await dispatch(stage.gateway, { agent: "plain" });
    await hold.asked;
    const second = await dispatch(stage.gateway, { agent: "plain" });
    expect(await statusOf(second)).toBe("queued");
    await stage.fill();
    expect((await call("POST", `/v1/tasks/${second}/cancel`)).body.status).toBe("cancelled");
    await stage.free();
    hold.open();
    expect((await ended(stage.gateway, first)).status).toBe("succeeded");
    await stage.untilLater(async () => (await entries()).some(({ action }) => action === "task.cancel"));
    expect(await ended(stage.gateway, second)).toMatchObject({ status: "cancelled", started_at: null });
    expect(stage.model.requests).toHaveLength(1);
    expect(unsettled(await entries())).toEqual([]);
  });

  test("on a task whose end could not be written: it ends as cancelled, whatever its result", async () => {
    const hold = held({ chunks: ["done"] });
    stage.model.script("a", hold.script);
    const id = await dispatch(stage.gateway, { agent: "plain" });
    await hold.asked;
    await stage.fill();
    hold.open();
    await until(endIsRefused);
    expect((await call("POST", `/v1/tasks/${id}/cancel`)).body.status).toBe("cancelled");
    await stage.free();
    await stage.untilLater(async () => (await entries()).some(({ action }) => action === "task.cancel"));
    expect(await ended(stage.gateway, id)).toMatchObject({ status: "cancelled", output: null });
    expect(unsettled(await entries())).toEqual([]);
  });

  test("but not on a finished task: it is refused, because it could not be recorded", async () => {
    const { id } = await run(stage.gateway, { agent: "plain" });
    await stage.fill();
    const refused = await call("POST", `/v1/tasks/${id}/cancel`);
    expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
  });
});

describe("a stop takes effect", () => {
  beforeEach(async () => {
    await startStage({ limits: { concurrent_tasks: 1, enforcement: "enforced" } });
    await addConnector(stage.gateway, "up", stage.tools.url);
    await stage.gateway.agent("plain");
    await stage.gateway.agent("other");
  });

  const stops = async () =>
    (await entries()).filter(({ action, outcome }) => action === "oversight.stop" && outcome === "succeeded");

  test("on all running tasks, waiting tasks and calls of the agent, and on all later ones", async () => {
    const token = await stage.gateway.token({ agent: "plain", scopes: ["admin"] });
    const person = await stage.gateway.token({ scopes: ["admin"], person: "Ada", role: "operator" });
    const client = await connect(stage.gateway, { token });
    const hold = held();
    stage.model.script("a", hold.script);
    const running = await dispatch(stage.gateway, { agent: "plain" });
    await hold.asked;
    const waiting = await dispatch(stage.gateway, { agent: "plain" });
    const tool = gate();
    stage.tools.answer(async () => {
      await tool.opened;
      return text("too late");
    });
    const called = client.refusal("tools/call", { name: "up__echo", arguments: {} });
    await until(() => stage.tools.calls.length === 1);
    await stage.fill();
    const decidedAt = new Date(stage.clock.now()).toISOString();
    const stopped = await stage.gateway.call("POST", "/v1/agents/plain/stop", { token: person });
    expect([stopped.status, stopped.body.status]).toEqual([200, "stopped"]);
    expect(stopped.headers.has("gatehouse-ledger")).toBe(false);
    await until(() => stage.model.requests[0]?.aborted === true);
    expect((await called).data.code).toBe("ledger_unavailable");
    await until(() => stage.tools.heard.includes("notifications/cancelled"));
    tool.open();
    const before = stage.sent();
    expect((await call("POST", "/v1/agents/plain/resume")).status).toBe(503);
    expect((await call("POST", "/v1/tasks", { agent: "plain", prompt: "hi" })).status).toBe(503);

    await stage.free();
    // The stop is not recorded yet, but it is in effect.
    expect(await stops()).toEqual([]);
    expect((await call("GET", "/v1/agents/plain")).body.status).toBe("stopped");
    expect(
      (await call("GET", "/v1/agents")).body.data.map(({ status }: { status: string }) => status),
    ).toEqual(["active", "stopped"]);
    expect((await call("POST", "/v1/tasks", { agent: "plain", prompt: "hi" })).body.code).toBe(
      "agent_stopped",
    );
    expect((await client.refusal("tools/call", { name: "up__echo", arguments: {} })).data.code).toBe(
      "agent_stopped",
    );
    // Changing the agent does not undo the stop.
    const changed = await stage.gateway.call("PATCH", "/v1/agents/plain", { body: { description: "new" } });
    expect(changed.body).toMatchObject({ status: "stopped", description: "new" });
    expect((await call("POST", "/v1/tasks", { agent: "plain", prompt: "hi" })).body.code).toBe(
      "agent_stopped",
    );
    expect(stage.sent()).toEqual(before);

    await stage.untilLater(async () => (await stops()).length === 1);
    const [stop] = await stops();
    expect(stop).toMatchObject({
      agent: "plain",
      request_id: stopped.headers.get("gatehouse-request-id"),
      oversight: { person: "Ada", role: "operator", decision: "stop", decided_at: decidedAt },
    });
    expect(stop?.detail?.late_ms).toBe(Date.parse(stop?.ts ?? "") - Date.parse(decidedAt));
    for (const id of [running, waiting]) {
      await stage.untilLater(async () => (await statusOf(id)) === "cancelled");
      expect(await ended(stage.gateway, id)).toMatchObject({
        error: { code: "agent_stopped" },
        finished_at: decidedAt,
      });
    }
    expect((await call("GET", "/v1/agents/plain")).body.status).toBe("stopped");
    expect((await call("POST", "/v1/agents/plain/resume")).body.status).toBe("active");
    stage.model.script("a", { chunks: ["ok"] });
    expect((await run(stage.gateway, { agent: "plain" })).status).toBe("succeeded");
  });

  test("before it is undone: a resume writes the stop first", async () => {
    await stage.fill();
    expect((await call("POST", "/v1/agents/plain/stop")).status).toBe(200);
    await stage.free();
    expect((await call("POST", "/v1/agents/plain/resume")).body.status).toBe("active");
    stage.clock.advance(60_000);
    expect((await run(stage.gateway, { agent: "plain" })).status).toBe("succeeded");
    const decisions = (await entries()).filter(({ action }) => action.startsWith("oversight."));
    expect(decisions.map(({ action, outcome }) => [action, outcome])).toEqual([
      ["oversight.stop", "succeeded"],
      ["oversight.resume", "succeeded"],
    ]);
  });

  test("on an agent that is archived before it is recorded: the decision remains as evidence", async () => {
    await stage.fill();
    expect((await call("POST", "/v1/agents/plain/stop")).status).toBe(200);
    await stage.free();
    expect((await call("DELETE", "/v1/agents/plain")).status).toBe(204);
    await stage.untilLater(async () => (await stops()).length === 1);
    await stage.gateway.agent("plain");
    expect((await call("GET", "/v1/agents/plain")).body.status).toBe("active");
  });

  test("on hundreds of waiting tasks in the time that one takes", async () => {
    const hold = held();
    stage.model.script("a", hold.script);
    const ids = [await dispatch(stage.gateway, { agent: "plain" })];
    await hold.asked;
    for (let more = 0; more < 300; more++) ids.push(await dispatch(stage.gateway, { agent: "plain" }));
    const kept = await dispatch(stage.gateway, { agent: "other" });
    await stage.fill();
    expect((await call("POST", "/v1/agents/plain/stop")).status).toBe(200);
    const tried = stage.lines.filter(({ message }) => message === "a task's end cannot be written yet");
    expect(tried.length).toBeLessThan(100);
    stage.model.script("a", { chunks: ["ok"] });
    await stage.free();
    const left = async () => (await call("GET", "/v1/tasks?status=queued&limit=200")).body.data;
    await stage.untilLater(async () => (await left()).length <= 1);
    await stage.untilLater(async () => (await statusOf(kept)) === "succeeded");
    for (const id of ids) expect(await statusOf(id)).toBe("cancelled");
    expect(unsettled(await entries())).toEqual([]);
  });

  test("and is logged completely if it can never be recorded", async () => {
    await stage.fill();
    expect((await call("POST", "/v1/agents/plain/stop")).status).toBe(200);
    const at = new Date(stage.clock.now()).toISOString();
    await stage.restart();
    const lost = stage.lines.find(
      ({ message }) => message === "a decision could not be recorded and is lost",
    );
    expect(lost).toMatchObject({
      level: "error",
      action: "oversight.stop",
      workspace: "default",
      agent: "plain",
      decision: "stop",
      decided_at: at,
    });
    for (const field of ["actor", "person", "request_id"]) expect(lost?.[field]).toBeString();
    // What was only in memory is lost with the process.
    expect((await call("GET", "/v1/agents/plain")).body.status).toBe("active");
  });

  test("and is recorded at shutdown if there is room again", async () => {
    await stage.fill();
    expect((await call("POST", "/v1/agents/plain/stop")).status).toBe(200);
    stage.disk.free();
    await stage.restart();
    expect((await call("GET", "/v1/agents/plain")).body.status).toBe("stopped");
    expect(await stops()).toHaveLength(1);
  });
});

test.each(["soft", "enforced"])(
  "a stop takes effect even above the request limit (%s)",
  async (enforcement) => {
    await startStage({ limits: { requests_per_minute: 8, enforcement } });
    await stage.gateway.agent("plain");
    stage.disk.fill();
    for (let calls = 1; calls < 8; calls++) expect((await call("GET", "/v1/agents")).status).toBe(503);
    // The last of these calls exceeds the limit. The notice about that cannot be written either.
    const stopped = await call("POST", "/v1/agents/plain/stop");
    expect([stopped.status, stopped.body.status]).toEqual([200, "stopped"]);
    expect(stopped.headers.get("ratelimit")).toContain("r=0");
    expect(stage.lines.some(({ message }) => message === "a limit notice cannot be written")).toBe(true);
  },
);

describe("a client that cancels a call over MCP also cancels the upstream's work in", () => {
  let client: Client;

  beforeEach(async () => {
    await startStage();
    await addConnector(stage.gateway, "up", stage.tools.url);
    await stage.gateway.agent("plain");
    client = await connect(stage.gateway);
  });

  const cancelling = (requestId: number) => client.tell("notifications/cancelled", { requestId });

  test("a tool", async () => {
    stage.tools.answer(() => new Promise(() => {}));
    const asked = request("tools/call", { name: "up__echo", arguments: {} });
    const answer = client.post(asked);
    await until(() => stage.tools.calls.length === 1);
    await stage.fill();
    await cancelling(asked.id);
    await until(() => stage.tools.heard.includes("notifications/cancelled"));
    await answer;
  });

  test("an agent's model", async () => {
    const hold = held();
    stage.model.script("a", hold.script);
    const asked = request("tools/call", { name: "agents__plain", arguments: { prompt: "hi" } });
    const answer = client.post(asked);
    await hold.asked;
    await stage.fill();
    await cancelling(asked.id);
    await until(() => stage.model.requests[0]?.aborted === true);
    await answer;
    await until(endIsRefused);
    await stage.free();
    const decisions = async () => (await entries()).filter(({ action }) => action === "task.cancel");
    await stage.untilLater(async () => (await decisions()).length === 1);
    expect((await decisions())[0]?.detail?.late_ms).toBeGreaterThan(0);
    expect(unsettled(await entries())).toEqual([]);
  });
});
