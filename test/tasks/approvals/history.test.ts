/** Earlier requests for approval and their decisions: the list that shows more than waiting calls. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { FakeClock } from "../../support/clock.ts";
import { ended } from "../support.ts";
import { type ApprovalStage, type Asked, startApprovals } from "./support.ts";

setDefaultTimeout(60_000);

const HOUR = 3_600_000;

interface Listed extends Asked {
  readonly agent: string;
  readonly tool: string;
  readonly status: string;
  readonly arguments: object | null;
  readonly approved_by: readonly { readonly person: string; readonly decided_at: string }[];
  readonly decision_seq: number | null;
  readonly reason: string | null;
}

async function list(stage: ApprovalStage, query = "", token?: string): Promise<Listed[]> {
  const { status, body } = await stage.gateway.call("GET", `/v1/approvals${query}`, token ? { token } : {});
  expect([status, body.next_cursor]).toEqual([200, null]);
  return body.data;
}

const person = (stage: ApprovalStage, name: string) =>
  stage.gateway.token({ scopes: ["approvals:write"], person: name });

describe("the list, with approvals decided in each way", () => {
  let stage: ApprovalStage;
  const clock = new FakeClock();
  /** Approvals by their result. */
  const asked: Record<string, Asked> = {};
  let start: number;

  beforeAll(async () => {
    stage = await startApprovals({}, { clock });
    await stage.gateway.agent("other", { approvals: ["up.*"] });
    await stage.gateway.agent("two", { approvals: ["up.*"], approvals_required: 2 });
    const [ann, bo] = [await person(stage, "Ann Lee"), await person(stage, " bo ")];
    start = clock.now();
    const expired = await stage.ask();
    clock.advance(24 * HOUR + 5_000);
    await ended(stage.gateway, expired.task);
    const approved = await stage.ask();
    clock.advance(60_000);
    await stage.decide(approved.path, { decision: "approve", reason: "as always" }, ann);
    await ended(stage.gateway, approved.task);
    const denied = await stage.ask("other");
    await stage.decide(denied.path, { decision: "deny", reason: "<b>not</b> now" }, bo);
    await ended(stage.gateway, denied.task);
    const withdrawn = await stage.ask("other");
    await stage.gateway.call("POST", `/v1/tasks/${withdrawn.task}/cancel`);
    const pending = await stage.ask("two");
    clock.advance(1_000);
    await stage.decide(pending.path, { decision: "approve" }, bo);
    Object.assign(asked, { expired, approved, denied, withdrawn, pending });
  });
  afterAll(() => stage.stop());

  const tasksOf = (...names: string[]) => names.map((name) => asked[name]?.task as string);

  test.each([
    ["status=open", "/status"],
    ["status=", "/status"],
    ["status=Pending", "/status"],
    ["agent=", "/agent"],
    ["agent=".padEnd(70, "a"), "/agent"],
    ["tool=", "/tool"],
    ["task=", "/task"],
    ["decided_by=ann", "/decided_by"],
    ["cursor=MA", "/cursor"],
  ])("is refused for %s, and the field is named", async (query, path) => {
    const { status, body } = await stage.gateway.call("GET", `/v1/approvals?${query}`);
    expect([status, body.errors?.[0].path]).toEqual([422, path]);
  });

  test("contains waiting approvals unless other statuses are requested, with the contract's fields unchanged", async () => {
    const [only, ...more] = await list(stage);
    expect(more).toEqual([]);
    expect(only).toEqual((await list(stage, "?status=pending"))[0]);
    expect(only).toMatchObject({
      task: asked.pending?.task,
      call_id: asked.pending?.call_id,
      agent: "two",
      tool: "up.send",
      arguments: { to: "all" },
      arguments_hash: asked.pending?.arguments_hash,
      status: "pending",
      required: 2,
      decided_at: null,
      decided_by: null,
      decision_seq: null,
      reason: null,
    });
    // The people who have approved so far, each spelled as in their token.
    expect(only?.approved_by).toEqual([{ person: " bo ", decided_at: new Date(clock.now()).toISOString() }]);
  });

  test.each<[query: string, ...names: string[]]>([
    ["status=pending", "pending"],
    ["status=approved", "approved"],
    ["status=denied", "denied"],
    ["status=expired", "expired"],
    ["status=withdrawn", "withdrawn"],
    ["status=decided", "denied", "approved", "expired"],
    ["status=all", "pending", "withdrawn", "denied", "approved", "expired"],
    ["status=all&agent=other", "withdrawn", "denied"],
    ["status=decided&agent=careful", "approved", "expired"],
    ["status=decided&tool=up.send", "denied", "approved", "expired"],
    ["status=decided&agent=careful&tool=up.send", "approved", "expired"],
    ["status=decided&agent=careful&tool=up.other"],
    ["status=all&tool=send"],
    ["status=all&agent=nobody"],
    ["status=all&task=task_none"],
    ["agent=careful"],
  ])("?%s", async (query, ...names) => {
    expect((await list(stage, `?${query}`)).map(({ task }) => task)).toEqual(tasksOf(...names));
  });

  test("of one task contains only that task's, whatever the other filters", async () => {
    const task = asked.denied?.task;
    for (const query of ["status=all", "status=decided", "status=denied&agent=other&tool=up.send"]) {
      expect((await list(stage, `?${query}&task=${task}`)).map((each) => each.task)).toEqual([
        task as string,
      ]);
    }
    for (const query of ["status=approved", "status=all&agent=careful", "status=all&tool=up.none"]) {
      expect(await list(stage, `?${query}&task=${task}`)).toEqual([]);
    }
  });

  test("shows who decided, when and why, like the decision's entry", async () => {
    const all = await list(stage, "?status=decided");
    for (const each of all) {
      const { body: entry } = await stage.gateway.call("GET", `/v1/ledger/${each.decision_seq}`);
      expect(entry).toMatchObject({ task: each.task, tool: "up.send", agent: each.agent });
      const { person, decided_at } = entry.oversight;
      expect(each).toMatchObject({ decided_at, decided_by: each.status === "expired" ? null : person });
    }
    const at = new Date(start + 24 * HOUR + 5_000 + 60_000).toISOString();
    expect(all).toMatchObject([
      { status: "denied", decided_by: " bo ", reason: "<b>not</b> now", approved_by: [], required: 1 },
      {
        status: "approved",
        decided_by: "Ann Lee",
        decided_at: at,
        reason: "as always",
        approved_by: [{ person: "Ann Lee", decided_at: at }],
        arguments: { to: "all" },
      },
      { status: "expired", decided_by: null, reason: null, approved_by: [] },
    ]);
    const [withdrawn] = await list(stage, "?status=withdrawn");
    expect(withdrawn).toMatchObject({ decided_at: null, decided_by: null, decision_seq: null, reason: null });
  });

  test("comes in pages, newest first, each once", async () => {
    for (const limit of [1, 2, 4, 5]) {
      const found: string[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const query = `?status=all&limit=${limit}${cursor && `&cursor=${cursor}`}`;
        const { body } = await stage.gateway.call("GET", `/v1/approvals${query}`);
        expect(body.data.length).toBeLessThanOrEqual(limit);
        found.push(...body.data.map(({ task }: Listed) => task));
        cursor = body.next_cursor;
      }
      expect(found).toEqual(tasksOf("pending", "withdrawn", "denied", "approved", "expired"));
    }
  });

  test("shows none of another workspace and, to an agent's token, only its own agent's", async () => {
    const elsewhere = await stage.gateway.workspace("elsewhere");
    for (const query of [
      "?status=all",
      `?status=all&task=${asked.denied?.task}`,
      "?status=all&agent=other",
    ]) {
      expect(await list(stage, query, elsewhere)).toEqual([]);
    }
    const token = await stage.gateway.token({ agent: "other", scopes: ["approvals:write"] });
    const own = tasksOf("withdrawn", "denied");
    const seen = async (query: string) => (await list(stage, query, token)).map(({ task }) => task);
    expect(await seen("?status=all")).toEqual(own);
    expect(await seen("?status=all&agent=other&tool=up.send")).toEqual(own);
    expect(await seen("?status=all&agent=careful")).toEqual([]);
    expect(await seen(`?status=all&task=${asked.approved?.task}`)).toEqual([]);
    const narrow = await stage.gateway.token({ scopes: ["tasks:read", "ledger:read"] });
    const refused = await stage.gateway.call("GET", "/v1/approvals?status=all", { token: narrow });
    expect([refused.status, refused.body.code]).toEqual([403, "scope_missing"]);
  });
});

describe("people's decisions", () => {
  let stage: ApprovalStage;
  afterEach(() => stage.stop());

  test("are shown for each of two people, but not if a person approved other arguments", async () => {
    stage = await startApprovals({ approvals_required: 2 });
    const { path, task } = await stage.ask();
    await stage.decide(path, { decision: "approve" }, await person(stage, "Ann"));
    const changed = { decision: "approve", arguments: { to: "one" }, reason: "fewer" };
    await stage.decide(path, changed, await person(stage, "Bo"));
    const [half] = await list(stage);
    expect(half).toMatchObject({ status: "pending", arguments: { to: "one" }, reason: null });
    expect(half?.approved_by.map(({ person }) => person)).toEqual(["Bo"]);
    const body = { decision: "approve", arguments_hash: half?.arguments_hash };
    await stage.decide(path, body, await person(stage, "Cy"));
    await ended(stage.gateway, task);
    const [whole] = await list(stage, "?status=approved");
    expect(whole).toMatchObject({ decided_by: "Cy", arguments: { to: "one" } });
    expect(whole?.approved_by.map(({ person }) => person)).toEqual(["Bo", "Cy"]);
  });

  test("have no arguments and no reason once erased, but still show who decided", async () => {
    stage = await startApprovals();
    const { path, task } = await stage.ask();
    await stage.decide(path, { decision: "deny", reason: "a secret" }, await person(stage, "Ann"));
    await ended(stage.gateway, task);
    const [before] = await list(stage, "?status=denied");
    expect(before).toMatchObject({ reason: "a secret", arguments: { to: "all" } });
    const dispatched = await stage.gateway.call("GET", "/v1/ledger?action=task.dispatch");
    const { seq } = dispatched.body.data.find((entry: { task: string }) => entry.task === task);
    expect((await stage.gateway.call("DELETE", `/v1/ledger/${seq}/payload`)).status).toBe(204);
    const [after] = await list(stage, "?status=denied");
    expect(after).toEqual({ ...(before as Listed), reason: null, arguments: null });
  });

  test("about a former agent are not shown to a new agent with the same name", async () => {
    stage = await startApprovals();
    const first = await stage.ask();
    await stage.decide(first.path, { decision: "deny" });
    await ended(stage.gateway, first.task);
    await stage.gateway.call("DELETE", "/v1/agents/careful");
    await stage.gateway.agent("careful", { approvals: ["up.*"] });
    const token = await stage.gateway.token({ agent: "careful", scopes: ["approvals:write"] });
    expect(await list(stage, "?status=all", token)).toEqual([]);
    const second = await stage.ask();
    const tasks = async (token?: string) =>
      (await list(stage, "?status=all&agent=careful", token)).map(({ task }) => task);
    expect(await tasks(token)).toEqual([second.task]);
    expect(await tasks()).toEqual([second.task, first.task]);
  });

  test("come in pages that end early if the texts are large", async () => {
    stage = await startApprovals({ approvals: ["up.*"] }, {}, [
      { name: "up__send", arguments: { to: "語".repeat(450_000) } },
    ]);
    const asked: string[] = [];
    for (let count = 0; count < 4; count++) asked.unshift((await stage.ask()).task);
    const { body } = await stage.gateway.call("GET", "/v1/approvals?limit=50");
    expect(body.data.map(({ task }: Listed) => task)).toEqual(asked.slice(0, 3));
    const { body: rest } = await stage.gateway.call("GET", `/v1/approvals?cursor=${body.next_cursor}`);
    expect([rest.data.map(({ task }: Listed) => task), rest.next_cursor]).toEqual([asked.slice(3), null]);
  });
});
