/**
 * A decision counts only if the ledger has it. Rows that someone invented in the file while no server was running
 * decide nothing.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { databasePath } from "../../../src/store/directory.ts";
import { FakeClock } from "../../support/clock.ts";
import { resealAll } from "../../support/seals.ts";
import { ended, gate, ledger, unsettled, until } from "../support.ts";
import { type ApprovalStage, type Asked, startApprovals } from "./support.ts";

setDefaultTimeout(120_000);

const HOUR = 3_600_000;
const CHANGED = [503, "ledger_unavailable"];

let stage: ApprovalStage;
afterEach(() => stage.stop());

/** Returns a function that runs statements on the file while no server has it open. */
const change =
  (...statements: readonly (readonly [sql: string, ...values: (string | number | null)[]])[]) =>
  (dataDir: string) => {
    const file = new Database(databasePath(dataDir));
    for (const [sql, ...values] of statements) expect(file.run(sql, values).changes).toBeGreaterThan(0);
    resealAll(file, dataDir);
    file.close();
  };

const outcome = ({ status, body }: { status: number; body: { code?: string; status?: string } }) => [
  status,
  body.code ?? body.status,
];
const person = (name: string) => stage.gateway.token({ scopes: ["approvals:write"], person: name });
const approve = (path: string, more: object = {}, token?: string) =>
  stage.decide(path, { decision: "approve", ...more }, token);
const list = async (query: string) => outcome(await stage.gateway.call("GET", `/v1/approvals?${query}`));
const decisions = async () =>
  (await ledger(stage.gateway)).filter(({ action }) => action.startsWith("oversight."));
const seqOf = async (test: (entry: Awaited<ReturnType<typeof ledger>>[number]) => boolean) =>
  (await ledger(stage.gateway)).findLast(test)?.seq ?? 0;
/** How often a changed approval was reported. */
const told = async () =>
  (await ledger(stage.gateway)).filter(({ action }) => action === "ledger.approval_changed").length;

/** Has a person approve one call, which is then made. */
async function approvedOnce(): Promise<{ readonly asked: Asked; readonly seq: number }> {
  const asked = await stage.ask();
  expect(outcome(await approve(asked.path, { reason: "as always" }))).toEqual([200, "approved"]);
  await ended(stage.gateway, asked.task);
  const seq = await seqOf(({ action, task }) => action === "oversight.approve" && task === asked.task);
  return { asked, seq };
}

const GO_ON = (task: string) => ["UPDATE tasks SET status = 'queued' WHERE id = ?", task] as const;

describe("a waiting call is not made, even if its row claims that it was approved:", () => {
  beforeEach(async () => {
    stage = await startApprovals({}, { isOnFiles: true });
  });

  test.each<
    [string, (asked: Asked, other: number) => readonly (readonly [string, ...(string | number)[]])[]]
  >([
    [
      "by the decision on another call",
      ({ task }, other) => [
        ["UPDATE approvals SET status = 'approved', decision_seq = ? WHERE task_id = ?", other, task],
      ],
    ],
    [
      "by that decision, with its vote",
      ({ task, call_id }, other) => [
        ["UPDATE approvals SET status = 'approved', decision_seq = ? WHERE task_id = ?", other, task],
        [
          "INSERT INTO approval_votes SELECT workspace_id, ?, ?, person, seq FROM approval_votes",
          task,
          call_id,
        ],
      ],
    ],
    [
      "by the other call's entries from end to end",
      ({ task, call_id }, other) => [
        [
          `UPDATE approvals SET (status, decision_seq, pending_seq, arguments_seq, arguments_hash, presented_at, expires_at)
             = (SELECT status, decision_seq, pending_seq, arguments_seq, arguments_hash, presented_at, expires_at
                FROM approvals WHERE decision_seq = ?) WHERE task_id = ?`,
          other,
          task,
        ],
        [
          "INSERT INTO approval_votes SELECT workspace_id, ?, ?, person, seq FROM approval_votes",
          task,
          call_id,
        ],
      ],
    ],
    [
      "by the entry that asks",
      ({ task }) => [
        ["UPDATE approvals SET status = 'approved', decision_seq = pending_seq WHERE task_id = ?", task],
        [
          "INSERT INTO approval_votes SELECT workspace_id, task_id, call_id, 'ann', pending_seq FROM approvals WHERE task_id = ?",
          task,
        ],
      ],
    ],
    [
      "by no decision at all",
      ({ task }) => [["UPDATE approvals SET status = 'approved' WHERE task_id = ?", task]],
    ],
    [
      "by zero people, since none are required",
      ({ task }) => [
        [
          "UPDATE approvals SET status = 'approved', decision_seq = pending_seq, required = 0 WHERE task_id = ?",
          task,
        ],
      ],
    ],
  ])("%s", async (_, forgery) => {
    const { seq } = await approvedOnce();
    const asked = await stage.ask();
    const calls = stage.tools.calls.length;
    await stage.restart(change(...forgery(asked, seq), GO_ON(asked.task)));
    const task = await ended(stage.gateway, asked.task);
    expect(task).toMatchObject({ status: "failed", error: { code: "interrupted" } });
    expect(task.error.message).toContain("contradicts the evidence ledger");
    expect(stage.tools.calls).toHaveLength(calls);
    const intents = (await ledger(stage.gateway)).filter(
      (entry) => entry.action === "tool.call" && entry.outcome === "allowed" && entry.task === asked.task,
    );
    expect(intents).toEqual([]);
    await until(async () => (await told()) === 1);
    expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  });
});

test("arguments that were not approved are not used, although an approval's row and the task's answer have them", async () => {
  stage = await startApprovals({ approvals_required: 2 }, { isOnFiles: true });
  const [ann, bo] = [await person("Ann"), await person("Bo")];
  const asked = await stage.ask();
  expect(outcome(await approve(asked.path, {}, ann))).toEqual([200, "pending"]);
  await stage.restart(
    change(
      [
        "UPDATE payloads SET body = replace(body, 'all', 'me!') WHERE kind = 'input' AND body LIKE '%\"to\"%'",
      ],
      ["UPDATE task_answers SET body = replace(body, 'all', 'me!')"],
    ),
  );
  expect(outcome(await approve(asked.path, {}, bo))).toEqual(CHANGED);
  expect(await list("status=pending")).toEqual(CHANGED);
  expect(stage.tools.calls).toEqual([]);
});

describe("two people must approve:", () => {
  let ann: string;
  let bo: string;
  let asked: Asked;
  beforeEach(async () => {
    stage = await startApprovals({ approvals_required: 2 }, { isOnFiles: true });
    ann = await person("Ann");
    bo = await person("Bo");
    asked = await stage.ask();
    expect(outcome(await approve(asked.path, {}, ann))).toEqual([200, "pending"]);
  });

  test.each<[string, readonly [string, ...(string | number)[]]]>([
    ["the row requires only one", ["UPDATE approvals SET required = 1"]],
    ["her vote has another name", ["UPDATE approval_votes SET person = 'cy'"]],
    [
      "a third person's vote was added",
      ["INSERT INTO approval_votes SELECT workspace_id, task_id, call_id, 'cy', seq FROM approval_votes"],
    ],
    [
      "a vote names an entry that does not exist yet",
      ["INSERT INTO approval_votes SELECT workspace_id, task_id, call_id, 'cy', 1000000 FROM approval_votes"],
    ],
  ])("a decision is not made while %s", async (_, forgery) => {
    await stage.restart(change(forgery));
    const before = await decisions();
    for (const token of [ann, bo]) expect(outcome(await approve(asked.path, {}, token))).toEqual(CHANGED);
    expect((await decisions()).slice(before.length).map((entry) => entry.outcome)).toEqual([
      "failed",
      "failed",
    ]);
    expect((await stage.task(asked.task)).status).toBe("awaiting_approval");
    expect(stage.tools.calls).toEqual([]);
    await until(async () => (await told()) === 1);
  });

  test("one person does not count as both, although the row claims that the call is settled", async () => {
    const seq = await seqOf(({ action }) => action === "oversight.approve");
    await stage.restart(
      change(
        ["UPDATE approvals SET status = 'approved', decision_seq = ?", seq],
        ["INSERT INTO approval_votes SELECT workspace_id, task_id, call_id, 'bo', seq FROM approval_votes"],
        GO_ON(asked.task),
      ),
    );
    expect((await ended(stage.gateway, asked.task)).error).toMatchObject({ code: "interrupted" });
    expect(stage.tools.calls).toEqual([]);
  });

  test("both count, even after a restart", async () => {
    await stage.restart();
    expect(outcome(await approve(asked.path, {}, bo))).toEqual([200, "approved"]);
    expect((await ended(stage.gateway, asked.task)).status).toBe("succeeded");
    expect(stage.tools.calls).toHaveLength(1);
    expect(await told()).toBe(0);
  });
});

describe("an expiry", () => {
  const clock = new FakeClock();
  beforeEach(async () => {
    stage = await startApprovals({}, { isOnFiles: true, clock, more: "approvals: { expire_hours: 1 }" });
  });

  const expiries = async () => (await decisions()).filter(({ action }) => action === "oversight.expire");

  test("of a call that was never presented is not recorded, and does not delay calls that were", async () => {
    const asked = await stage.ask();
    await stage.restart(
      change([
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
         INSERT INTO approvals (workspace_id, task_id, call_id, agent, tool, pending_seq, arguments_seq,
           arguments_hash, required, presented_at, expires_at, status)
         SELECT workspace_id, 'task_made_up', 'call_' || i, agent, 'bank.transfer', 1 + i % 9, 1 + i % 9, arguments_hash, 1, 1000,
           2000 + i, 'pending' FROM n, approvals`,
      ]),
    );
    clock.advance(HOUR + 5_000);
    expect((await ended(stage.gateway, asked.task)).output).toContain("in time");
    clock.advance(10_000);
    expect((await expiries()).map(({ task }) => task)).toEqual([asked.task]);
    expect(await told()).toBeGreaterThan(0);
  });

  test.each([
    ["earlier than was shown", "UPDATE approvals SET expires_at = expires_at - 3000000"],
    ["of a call that was presented at another time", "UPDATE approvals SET presented_at = presented_at - 1"],
    ["of another tool", "UPDATE approvals SET tool = 'bank.transfer'"],
    ["of another agent", "UPDATE approvals SET agent = 'helper'"],
  ])("%s is not recorded", async (_, forgery) => {
    const asked = await stage.ask();
    await stage.restart(change([forgery]));
    clock.advance(HOUR + 5_000);
    await until(async () => (await told()) === 1);
    expect(await expiries()).toEqual([]);
    expect(await list(`status=all&task=${asked.task}`)).toEqual(CHANGED);
  });
});

describe("a list of decisions", () => {
  beforeEach(async () => {
    stage = await startApprovals({}, { isOnFiles: true });
  });

  test.each([
    [
      "another decision's person",
      "UPDATE approvals SET decision_seq = (SELECT MAX(decision_seq) FROM approvals) WHERE decision_seq = (SELECT MIN(decision_seq) FROM approvals)",
    ],
    ["a denial as an approval", "UPDATE approvals SET status = 'denied' WHERE status = 'approved'"],
    ["an approval as expired", "UPDATE approvals SET status = 'expired' WHERE status = 'approved'"],
    [
      "another reason",
      "UPDATE payloads SET body = 'because the chief said so' WHERE kind = 'output' AND body = 'as always'",
    ],
    [
      "other arguments",
      'UPDATE payloads SET body = \'{"to":"one"}\' WHERE kind = \'input\' AND body = \'{"to":"all"}\'',
    ],
    ["a vote of another person", "UPDATE approval_votes SET person = 'ann lee'"],
    ["no vote", "DELETE FROM approval_votes"],
  ])("never shows %s", async (_, forgery) => {
    await approvedOnce();
    await approvedOnce();
    await stage.restart(change([forgery]));
    expect(await list("status=decided")).toEqual(CHANGED);
    await until(async () => (await told()) > 0);
  });

  test("shows who decided, when and why after a restart, according to the entries", async () => {
    const { asked, seq } = await approvedOnce();
    await stage.restart();
    const { body } = await stage.gateway.call("GET", "/v1/approvals?status=decided");
    const [entry] = (await decisions()).filter((each) => each.seq === seq);
    expect(body.data).toMatchObject([
      {
        task: asked.task,
        decided_by: entry?.oversight?.person,
        decided_at: entry?.oversight?.decided_at,
        decision_seq: seq,
        reason: "as always",
      },
    ]);
    expect(await told()).toBe(0);
  });
});

test.each([
  [
    "shown first",
    "UPDATE approvals SET first_seq = 2 WHERE pending_seq = (SELECT MAX(pending_seq) FROM approvals)",
  ],
  [
    "shown last",
    "UPDATE approvals SET pending_seq = (SELECT MIN(pending_seq) FROM approvals), arguments_seq = (SELECT MIN(arguments_seq) FROM approvals) WHERE pending_seq = (SELECT MAX(pending_seq) FROM approvals)",
  ],
  [
    "called",
    "UPDATE tool_calls SET intent_seq = 2 WHERE intent_seq = (SELECT MAX(intent_seq) FROM tool_calls)",
  ],
])(
  "no other text is erased with a call's arguments, although a row claims that they were %s there",
  async (_, forgery) => {
    stage = await startApprovals({}, { isOnFiles: true });
    const first = await stage.ask();
    await approve(first.path);
    await ended(stage.gateway, first.task);
    const asked = await stage.ask();
    await approve(asked.path);
    await ended(stage.gateway, asked.task);
    const seq = await seqOf(({ task, outcome }) => task === asked.task && outcome === "pending");
    const texts = () => {
      const file = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
      const row = file.query<{ count: number }, []>("SELECT COUNT(*) AS count FROM payloads").get();
      file.close();
      return row?.count;
    };
    await stage.restart(change([forgery]));
    const before = texts();
    const erased = await stage.gateway.call("DELETE", `/v1/ledger/${seq}/payload`);
    expect(outcome(erased)).toEqual(CHANGED);
    expect(texts()).toBe(before);
  },
);

test("a call that was approved is made once, even if the store no longer knows of it", async () => {
  stage = await startApprovals({}, { isOnFiles: true });
  const [called, answer] = [gate(), gate()];
  stage.upstream.script("a", (request) => {
    const { messages } = request.body as unknown as { messages: { role: string }[] };
    if (messages.at(-1)?.role === "tool") {
      called.open();
      return { chunks: ["done"], gate: answer.opened };
    }
    return { chunks: [], toolCalls: [{ name: "up__send", arguments: { to: "all" } }] as never };
  });
  const asked = await stage.ask();
  await approve(asked.path);
  await called.opened;
  expect(stage.tools.calls).toHaveLength(1);
  await stage.restart(change(["DELETE FROM tool_calls"], GO_ON(asked.task)));
  answer.open();
  expect(await ended(stage.gateway, asked.task)).toMatchObject({ error: { code: "internal" } });
  expect(stage.tools.calls).toHaveLength(1);
  const entries = await ledger(stage.gateway);
  expect(entries.filter(({ action }) => action === "store.row_changed")).toHaveLength(1);
});
