/**
 * An approval is valid for what was shown: the connector and tool as they were then. If either has changed since, the
 * call is presented again.
 */
import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { databasePath } from "../../../src/store/directory.ts";
import { addConnector } from "../../mcp/support.ts";
import { allEvents } from "../../support/events.ts";
import { type ScriptedMcp, startScriptedMcp } from "../../support/scripted-mcp.ts";
import { dispatch, ended, held, ledger, openEvents, unsettled, until } from "../support.ts";
import { presentAsEarlier } from "./earlier.ts";
import { type ApprovalStage, type Asked, startApprovals } from "./support.ts";

let stage: ApprovalStage;
let others: ScriptedMcp[] = [];
afterEach(async () => {
  await stage.stop();
  await Promise.all(others.map((other) => other.close()));
  others = [];
});

const SCHEMA = {
  type: "object",
  properties: { to: { type: "string" }, copies: { type: "integer" } },
  required: ["to"],
  additionalProperties: false,
};
const SEND = { name: "send", inputSchema: SCHEMA };

/** Replaces `up` with another connector of the same name, with the same tool. */
async function swap(): Promise<ScriptedMcp> {
  const other = startScriptedMcp([SEND]);
  others.push(other);
  expect((await stage.gateway.call("DELETE", "/v1/connectors/up")).status).toBe(204);
  await addConnector(stage.gateway, "up", other.url);
  return other;
}

async function refreshAs(tool: object): Promise<void> {
  stage.tools.list([tool]);
  expect((await stage.gateway.call("POST", "/v1/connectors/up/refresh")).status).toBe(200);
}

type Shown = Asked & { readonly definition_hash: string | null };
const shown = async (task: string): Promise<Shown | undefined> =>
  ((await stage.pending()) as Shown[]).find((each) => each.task === task);
const approve = (path: string, more: object = {}, token?: string) =>
  stage.decide(path, { decision: "approve", ...more }, token);
const outcome = (answer: { status: number; body: { code?: string; status?: string } }) => [
  answer.status,
  answer.body.code ?? answer.body.status,
];
const CHANGED = [409, "approval_changed"];

test("a call requested from one connector is not sent to another: it is presented again, and made once approved", async () => {
  stage = await startApprovals();
  const asked = (await stage.ask()) as Shown;
  const other = await swap();
  const refused = await approve(asked.path);
  expect(outcome(refused)).toEqual(CHANGED);
  expect(refused.body.detail).toContain("changed");
  expect([stage.tools.calls, other.calls]).toEqual([[], []]);
  expect((await stage.task(asked.task)).status).toBe("awaiting_approval");

  const again = await shown(asked.task);
  expect(again?.definition_hash).toMatch(/^[0-9a-f]{64}$/);
  expect(again?.definition_hash).not.toBe(asked.definition_hash);
  expect(again?.arguments_hash).not.toBe(asked.arguments_hash);
  // The first presentation can no longer be approved.
  expect(outcome(await approve(asked.path, { arguments_hash: asked.arguments_hash }))).toEqual(CHANGED);
  expect(outcome(await approve(asked.path, { definition_hash: asked.definition_hash }))).toEqual(CHANGED);
  const { arguments_hash, definition_hash } = again ?? asked;
  expect(outcome(await approve(asked.path, { arguments_hash, definition_hash }))).toEqual([200, "approved"]);
  const task = await ended(stage.gateway, asked.task);
  expect(task).toMatchObject({ status: "succeeded", tools_called: [{ status: "succeeded" }] });
  expect([stage.tools.calls, other.calls]).toEqual([[], [{ name: "send", input: { to: "all" } }]]);
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);

  const events = await allEvents(await openEvents(stage.gateway, asked.task));
  const aboutCall = events
    .map(({ event }) => event)
    .filter((name) => /^(?:approval|tool)\./.test(name ?? ""));
  expect(aboutCall).toEqual([
    "tool.call",
    "approval.required",
    "approval.required",
    "approval.decided",
    "tool.result",
  ]);
});

test("the ledger records which definition was presented, and which was approved", async () => {
  stage = await startApprovals();
  const asked = (await stage.ask()) as Shown;
  await swap();
  await approve(asked.path);
  const again = await shown(asked.task);
  await approve(asked.path);
  await ended(stage.gateway, asked.task);
  const entries = (await ledger(stage.gateway)).filter(({ task }) => task === asked.task);
  const [first, second] = [String(asked.definition_hash), String(again?.definition_hash)];
  const hashes = entries.flatMap(({ action, outcome, detail }) =>
    detail?.definition_hash === undefined ? [] : [[action, outcome, detail.definition_hash]],
  );
  expect(hashes).toEqual([
    ["tool.call", "pending", first],
    ["tool.call", "pending", second],
    ["oversight.approve", "succeeded", second],
  ]);
  const refused = entries.filter(
    ({ action, outcome }) => action === "oversight.approve" && outcome !== "succeeded",
  );
  expect(refused.map(({ outcome, code }) => [outcome, code])).toEqual([["denied", "approval_changed"]]);
});

test.each([
  ["schema", { ...SEND, inputSchema: { ...SCHEMA, properties: { to: { type: "string" } } } }],
  ["description", { ...SEND, description: "Sends it to the whole world." }],
  ["annotations", { ...SEND, annotations: { destructiveHint: true } }],
])("a tool whose %s changed since it was presented is presented again", async (_name, tool) => {
  stage = await startApprovals();
  const asked = await stage.ask();
  await refreshAs(tool);
  expect(outcome(await approve(asked.path))).toEqual(CHANGED);
  expect(stage.tools.calls).toEqual([]);
  expect(outcome(await approve(asked.path))).toEqual([200, "approved"]);
  await ended(stage.gateway, asked.task);
  expect(stage.tools.calls).toHaveLength(1);
});

test("a refresh that changes nothing does not ask again", async () => {
  stage = await startApprovals();
  const asked = await stage.ask();
  await refreshAs({ ...SEND });
  expect(outcome(await approve(asked.path))).toEqual([200, "approved"]);
});

test("a tool that no longer exists is not called, although it was approved", async () => {
  stage = await startApprovals();
  const asked = await stage.ask();
  await stage.gateway.call("DELETE", "/v1/connectors/up");
  expect(outcome(await approve(asked.path))).toEqual([200, "approved"]);
  expect((await ended(stage.gateway, asked.task)).tools_called).toMatchObject([{ status: "denied" }]);
  expect(stage.tools.calls).toEqual([]);
});

test("a denial works even if the tool has changed, and presents nothing again", async () => {
  stage = await startApprovals();
  const asked = await stage.ask();
  const other = await swap();
  expect(outcome(await stage.decide(asked.path, { decision: "deny" }))).toEqual([200, "denied"]);
  await ended(stage.gateway, asked.task);
  expect(other.calls).toEqual([]);
});

test("other arguments are checked against the definition too", async () => {
  stage = await startApprovals();
  const asked = await stage.ask();
  const other = await swap();
  expect(outcome(await approve(asked.path, { arguments: { to: "one" } }))).toEqual(CHANGED);
  expect(outcome(await approve(asked.path, { arguments: { to: "one" } }))).toEqual([200, "approved"]);
  await ended(stage.gateway, asked.task);
  expect(other.calls).toEqual([{ name: "send", input: { to: "one" } }]);
});

describe("two people", () => {
  const person = (name: string) => stage.gateway.token({ scopes: ["approvals:write"], person: name });

  test("must both approve a call that is presented again: earlier approvals do not count", async () => {
    stage = await startApprovals({ approvals_required: 2 });
    const asked = await stage.ask();
    const [ann, bo] = [await person("Ann"), await person("Bo")];
    expect(outcome(await approve(asked.path, {}, ann))).toEqual([200, "pending"]);
    const other = await swap();
    expect(outcome(await approve(asked.path, {}, bo))).toEqual(CHANGED);
    expect(outcome(await approve(asked.path, {}, bo))).toEqual([200, "pending"]);
    expect(other.calls).toEqual([]);
    expect(outcome(await approve(asked.path, {}, ann))).toEqual([200, "approved"]);
    await ended(stage.gateway, asked.task);
    expect(other.calls).toHaveLength(1);
  });

  test("arguments changed by the first person stay changed when the call is presented again", async () => {
    stage = await startApprovals({ approvals_required: 2 });
    const asked = await stage.ask();
    const [ann, bo] = [await person("Ann"), await person("Bo")];
    expect(outcome(await approve(asked.path, { arguments: { to: "one" } }, ann))).toEqual([200, "pending"]);
    const other = await swap();
    const { arguments_hash } = (await shown(asked.task)) ?? asked;
    expect(outcome(await approve(asked.path, { arguments_hash }, bo))).toEqual(CHANGED);
    expect(await shown(asked.task)).toMatchObject({ arguments: { to: "one" } });
    expect(outcome(await approve(asked.path, {}, bo))).toEqual([200, "pending"]);
    expect(outcome(await approve(asked.path, {}, ann))).toEqual([200, "approved"]);
    await ended(stage.gateway, asked.task);
    expect(other.calls).toEqual([{ name: "send", input: { to: "one" } }]);
  });
});

describe("between the approval and the call", () => {
  /** Only one task at a time may run, so an approved one waits while another has the slot. */
  async function approvedAndWaiting(): Promise<{ asked: Asked; resumeTask: () => void }> {
    stage = await startApprovals(
      {},
      { tiers: { 1: ["a"], 2: ["slow"] }, limits: { concurrent_tasks: 1, enforcement: "enforced" } },
    );
    const asked = await stage.ask();
    const hold = held();
    stage.upstream.script("slow", hold.script);
    await dispatch(stage.gateway, { agent: "careful", tier: 2 });
    await hold.asked;
    expect(outcome(await approve(asked.path))).toEqual([200, "approved"]);
    expect((await stage.task(asked.task)).status).toBe("queued");
    return { asked, resumeTask: hold.open };
  }

  const waiting = (asked: Asked) => until(async () => (await shown(asked.task)) !== undefined);

  test("the connector is replaced: the call is not made, and is presented again", async () => {
    const { asked, resumeTask } = await approvedAndWaiting();
    const other = await swap();
    resumeTask();
    await waiting(asked);
    expect([stage.tools.calls, other.calls]).toEqual([[], []]);
    expect(outcome(await approve(asked.path))).toEqual([200, "approved"]);
    const task = await ended(stage.gateway, asked.task);
    expect(task).toMatchObject({ status: "succeeded", tools_called: [{ status: "succeeded" }] });
    expect([stage.tools.calls.length, other.calls.length]).toEqual([0, 1]);
    expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  });

  test("the tool gets another schema: the call is not made, and is presented again", async () => {
    const { asked, resumeTask } = await approvedAndWaiting();
    await refreshAs({ ...SEND, description: "other" });
    resumeTask();
    await waiting(asked);
    expect(stage.tools.calls).toEqual([]);
  });

  test("nothing changes: the call is made", async () => {
    const { asked, resumeTask } = await approvedAndWaiting();
    resumeTask();
    await ended(stage.gateway, asked.task);
    expect(stage.tools.calls).toHaveLength(1);
  });
});

describe("after a restart", () => {
  test("an unchanged call is approved", async () => {
    stage = await startApprovals();
    const asked = await stage.ask();
    await stage.restart();
    expect(outcome(await approve(asked.path))).toEqual([200, "approved"]);
    await ended(stage.gateway, asked.task);
    expect(stage.tools.calls).toHaveLength(1);
  });

  test("a connector that was replaced earlier is not mistaken for the presented one", async () => {
    stage = await startApprovals();
    const asked = await stage.ask();
    const other = await swap();
    await stage.restart();
    expect(outcome(await approve(asked.path))).toEqual(CHANGED);
    expect(other.calls).toEqual([]);
    expect(outcome(await approve(asked.path))).toEqual([200, "approved"]);
    await ended(stage.gateway, asked.task);
    expect(other.calls).toHaveLength(1);
  });

  test("a request from an older version, without a definition, is presented again", async () => {
    stage = await startApprovals();
    const asked = await stage.ask();
    await stage.restart((dataDir) => presentAsEarlier(dataDir, asked));
    expect(await shown(asked.task)).toMatchObject({ definition_hash: null, arguments: { to: "all" } });
    expect(outcome(await approve(asked.path))).toEqual(CHANGED);
    expect(outcome(await approve(asked.path))).toEqual([200, "approved"]);
    expect((await ended(stage.gateway, asked.task)).status).toBe("succeeded");
  });

  test("an approval from an older version, without a definition, is presented again before the call", async () => {
    stage = await startApprovals();
    const asked = await stage.ask();
    await stage.restart((dataDir) => presentAsEarlier(dataDir, asked, "Ann"));
    await until(async () => (await shown(asked.task))?.definition_hash != null);
    expect(stage.tools.calls).toEqual([]);
    expect(outcome(await approve(asked.path))).toEqual([200, "approved"]);
    expect((await ended(stage.gateway, asked.task)).status).toBe("succeeded");
    expect(stage.tools.calls).toHaveLength(1);
  });

  test("an older version's denial or expiry is still a decision", async () => {
    stage = await startApprovals();
    const asked = await stage.ask();
    await stage.restart((dataDir) => presentAsEarlier(dataDir, asked));
    expect(outcome(await stage.decide(asked.path, { decision: "deny" }))).toEqual([200, "denied"]);
    expect((await ended(stage.gateway, asked.task)).output).toContain("denied");
    expect((await stage.gateway.call("GET", "/v1/approvals?status=denied")).body.data).toHaveLength(1);
  });
});

test("arguments presented twice are erased everywhere", async () => {
  stage = await startApprovals({}, { isOnFiles: true });
  const asked = await stage.ask();
  await swap();
  await approve(asked.path);
  await stage.decide(asked.path, { decision: "deny" });
  await ended(stage.gateway, asked.task);
  const presented = (await ledger(stage.gateway)).filter(
    ({ task, outcome }) => task === asked.task && outcome === "pending",
  );
  expect(presented).toHaveLength(2);
  const answer = await stage.gateway.call("DELETE", `/v1/ledger/${presented[1]?.seq}/payload`);
  expect(answer.status).toBe(204);
  const file = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
  const left = file
    .query("SELECT seq FROM payloads WHERE kind = 'input' AND seq IN (?, ?)")
    .all(presented[0]?.seq ?? 0, presented[1]?.seq ?? 0);
  file.close();
  expect(left).toEqual([]);
});
