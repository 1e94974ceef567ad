/** `GET /v1/ledger?task=` returns everything that was ever recorded about a task, and nothing else. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { parse } from "csv-parse/sync";
import { type ApprovalStage, startApprovals } from "../tasks/approvals/support.ts";
import { ended } from "../tasks/support.ts";

setDefaultTimeout(60_000);

interface Entry {
  readonly seq: number;
  readonly action: string;
  readonly phase: string;
  readonly task: string | null;
  readonly agent: string | null;
}

let stage: ApprovalStage;
let task: string;
let other: string;
/** The workspace's whole ledger before the first filtered read. */
let all: Entry[];
let size: number;

/** Prepares a task that is requested, decided on, read, overridden and erased, among other tasks of its agent. */
beforeAll(async () => {
  stage = await startApprovals();
  const { gateway } = stage;
  const { call } = gateway;
  other = (await stage.ask()).task;
  const asked = await stage.ask();
  task = asked.task;
  await stage.decide(asked.path, { decision: "approve" });
  await ended(gateway, task);
  expect((await stage.decide(asked.path, { decision: "deny" })).status).toBe(409);
  expect((await call("POST", `/v1/tasks/${task}/cancel`)).status).toBe(409);
  const body = { decision: "disregard", reason: "wrong" };
  expect((await call("POST", `/v1/tasks/${task}/override`, { body })).status).toBe(200);
  const request = { agent: "careful", prompt: "again" };
  const key = { "idempotency-key": "once" };
  const first = await call("POST", "/v1/tasks", { body: request, headers: key });
  expect((await call("POST", "/v1/tasks", { body: request, headers: key })).body.id).toBe(first.body.id);
  await call("POST", `/v1/tasks/${other}/cancel`);
  const dispatched = (await call("GET", `/v1/ledger?action=task.dispatch&limit=200`)).body.data as Entry[];
  const { seq } = dispatched.find((entry) => entry.task === task) as Entry;
  expect((await call("DELETE", `/v1/ledger/${seq}/payload`)).status).toBe(204);
  // Enough other entries that the ones so far are in complete blocks of the index, and later ones are not.
  for (let count = 0; count < 300; count++) await call("GET", "/v1/agents/careful");
  await call("GET", `/v1/tasks/${task}`);
  await ended(gateway, first.body.id);
  await ended(gateway, other);
  all = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { body } = await call("GET", `/v1/ledger?limit=200${cursor && `&cursor=${cursor}`}`);
    all.push(...body.data);
    cursor = body.next_cursor;
  }
  size = all.at(-1)?.seq ?? 0;
});
afterAll(() => stage.stop());

const named = (id: string) => all.filter((entry) => entry.task === id);

async function pages(query: string, token?: string): Promise<Entry[]> {
  const found: Entry[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const path = `/v1/ledger?${query}${cursor && `&cursor=${cursor}`}`;
    const { status, body } = await stage.gateway.call("GET", path, token ? { token } : {});
    expect(status).toBe(200);
    found.push(...body.data);
    cursor = body.next_cursor;
  }
  return found.filter(({ seq }) => seq <= size);
}

test.each(["format=article14", "format=article14&agent=careful"])(
  "%s is refused, and the field is named",
  async (query) => {
    for (const id of [task, "task_none"]) {
      const { status, body } = await stage.gateway.call("GET", `/v1/ledger?${query}&task=${id}`);
      expect([status, body.code, body.errors?.[0].path]).toEqual([422, "validation_failed", "/task"]);
    }
  },
);

test("the task's entries are of many kinds, before and after its end", () => {
  const actions = new Set(named(task).map(({ action }) => action));
  expect([...actions].sort()).toEqual([
    "model.call",
    "oversight.approve",
    "oversight.deny",
    "oversight.disregard",
    "payload.erase",
    "task.cancel",
    "task.dispatch",
    "task.events",
    "task.read",
    "tool.call",
  ]);
});

test("every task of the workspace has all of its entries, as found by a full scan", async () => {
  const ids = new Set(all.flatMap(({ task }) => task ?? []));
  expect(ids.size).toBeGreaterThanOrEqual(3);
  for (const id of ids) {
    expect(await pages(`task=${id}`)).toEqual(named(id));
    expect(await pages(`task=${id}&order=desc&limit=3`)).toEqual(named(id).toReversed());
  }
});

test("other filters narrow it", async () => {
  const narrowed = (keep: (entry: Entry) => boolean) => named(task).filter(keep);
  expect(await pages(`task=${task}&action=payload.erase`)).toEqual(
    narrowed(({ action }) => action === "payload.erase"),
  );
  expect(await pages(`task=${task}&agent=careful`)).toEqual(narrowed(({ agent }) => agent === "careful"));
  expect(await pages(`task=${task}&agent=somebody`)).toEqual([]);
  expect(await pages(`task=${task}&from=2100-01-01T00:00:00Z`)).toEqual([]);
});

test("an unknown task, or one of another workspace, has none", async () => {
  const elsewhere = await stage.gateway.workspace("elsewhere");
  for (const [id, token] of [["task_none"], ["'"], [task.toUpperCase()], [task, elsewhere]] as const) {
    const { status, body } = await stage.gateway.call("GET", `/v1/ledger?task=${encodeURIComponent(id)}`, {
      ...(token === undefined ? {} : { token }),
    });
    expect([status, body]).toEqual([200, { data: [], next_cursor: null }]);
  }
});

describe("the other formats", () => {
  const text = async (query: string) => {
    const response = await fetch(`${stage.gateway.url}/v1/ledger?${query}`, {
      headers: { authorization: `Bearer ${stage.gateway.admin}` },
    });
    expect(response.status).toBe(200);
    return response.text();
  };

  test("contain the same entries, whole and by page", async () => {
    const lines = (await text(`task=${task}&format=ndjson`)).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line)).filter(({ seq }) => seq <= size)).toEqual(named(task));
    const rows: { seq: string; task: string }[] = parse(await text(`task=${task}&format=csv`), {
      columns: true,
    });
    expect(rows.map(({ seq }) => Number(seq)).filter((seq) => seq <= size)).toEqual(
      named(task).map(({ seq }) => seq),
    );
    const page = (await text(`task=${task}&format=ndjson&limit=2`)).trimEnd().split("\n");
    expect(page.map((line) => JSON.parse(line))).toEqual(named(task).slice(0, 2));
  });

  test("contain none if the task does not exist", async () => {
    expect(await text("task=task_none&format=ndjson")).toBe("");
    expect((await text("task=task_none&format=csv")).trimEnd().split("\n")).toHaveLength(1);
  });
});

test("the read's entry names the task, but does not belong to it", async () => {
  const answer = await stage.gateway.call("GET", `/v1/ledger?task=${task}&limit=1`);
  const seq = answer.headers.get("gatehouse-ledger");
  const { body } = await stage.gateway.call("GET", `/v1/ledger/${seq}`);
  expect(body).toMatchObject({ action: "ledger.read", task: null, detail: { filters: { task } } });
});
