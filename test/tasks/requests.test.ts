/** Requests to models never use up what tools and other workspaces need, however many of them hang. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { modelRequests, REQUEST_LIMIT_VARIABLE } from "../../src/limits/request-plan.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { dispatch, ended, held, openEvents, type Stage, startStage, until } from "./support.ts";

setDefaultTimeout(60_000);

/** All requests to models, as the gateway counts them; `OF_ONE` is one workspace's share. */
const REQUESTS = modelRequests(Bun.env[REQUEST_LIMIT_VARIABLE], 1_024);
const OF_ONE = REQUESTS - 8;
/** More than Bun sends at once by default. */
const TASKS = Math.max(280, REQUESTS + 20);

let stage: Stage;
let upstream: ScriptedMcp;
let other: string;
beforeEach(async () => {
  stage = await startStage({ limits: { running_tasks_per_node: TASKS + 20 } });
  upstream = startScriptedMcp(["echo"]);
  await stage.gateway.agent("busy");
  other = await stage.gateway.workspace("other");
  const agent = { name: "calm", owner: "tests", memory_scope: "/" };
  await stage.gateway.call("POST", "/v1/agents", { token: other, body: agent });
  const transport = { type: "http", url: upstream.url };
  const connector = { name: "up", kind: "mcp", transport };
  const made = await stage.gateway.call("POST", "/v1/connectors", { token: other, body: connector });
  expect(made.body).toMatchObject({ status: "ready" });
});
afterEach(async () => {
  await stage.stop();
  await upstream.close();
});

const askedOf = (model: string) => stage.upstream.requests.filter((each) => each.model === model).length;

describe("tasks of one workspace that hang in their models", () => {
  test("leave requests to another workspace's tools and models, and end when they are cancelled", async () => {
    const { gateway } = stage;
    stage.upstream.script("a", { hang: true });
    const ids = await Promise.all(Array.from({ length: TASKS }, () => dispatch(gateway, { agent: "busy" })));
    await until(() => askedOf("a") === OF_ONE);

    const call = { token: other, body: { arguments: { text: "here" } } };
    expect(await gateway.call("POST", "/v1/tools/up.echo/call", call)).toMatchObject({
      status: 200,
      body: { status: "succeeded" },
    });
    const calm = await dispatch(gateway, { agent: "calm", tier: 2 }, { token: other });
    // Reads the stream to its end.
    await (await openEvents(gateway, calm, { authorization: `Bearer ${other}` })).text();
    const task = await gateway.call("GET", `/v1/tasks/${calm}`, { token: other });
    expect(task.body).toMatchObject({ status: "succeeded", model: "up/c" });
    expect(askedOf("a")).toBe(OF_ONE);

    // This includes requests that are still waiting for their turn.
    expect((await gateway.call("POST", "/v1/agents/busy/stop")).status).toBe(200);
    for (const id of ids) expect(await ended(gateway, id)).toMatchObject({ status: "cancelled" });
    expect(askedOf("a")).toBe(OF_ONE);
    await gateway.call("POST", "/v1/agents/busy/resume");
    expect(await ended(gateway, await dispatch(gateway, { agent: "busy", tier: 2 }))).toMatchObject({
      status: "succeeded",
    });
  });

  test("all get their turn once earlier tasks have their answers", async () => {
    const { gateway } = stage;
    const hold = held({ chunks: ["done"] });
    stage.upstream.script("a", hold.script);
    const ids = await Promise.all(Array.from({ length: TASKS }, () => dispatch(gateway, { agent: "busy" })));
    await until(() => askedOf("a") === OF_ONE);
    hold.open();
    for (const id of ids) expect(await ended(gateway, id)).toMatchObject({ status: "succeeded" });
    expect(askedOf("a")).toBe(TASKS);
  });
});

test("an embedded model needs no request: its tasks run while all requests are in use", async () => {
  await stage.stop();
  stage = await startStage({
    tiers: { 1: ["a"], 2: ["builtin/extractive"] },
    limits: { running_tasks_per_node: TASKS + 20 },
  });
  const { gateway } = stage;
  await gateway.agent("busy");
  stage.upstream.script("a", { hang: true });
  await Promise.all(Array.from({ length: TASKS }, () => dispatch(gateway, { agent: "busy" })));
  await until(() => askedOf("a") === OF_ONE);
  expect(await ended(gateway, await dispatch(gateway, { agent: "busy", tier: 2 }))).toMatchObject({
    status: "succeeded",
  });
});
