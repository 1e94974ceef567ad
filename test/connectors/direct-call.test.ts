/** Calls outside of tasks that end early: what they answer, and what the ledger records. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import Type from "typebox";
import { type Agents, createAgents } from "../../src/access/agents.ts";
import { OPEN_POLICY } from "../../src/access/tier-policy.ts";
import { openWorkspaces, type Workspaces } from "../../src/access/workspaces.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { builtinTool } from "../../src/connectors/builtin/tool.ts";
import { type CallTool, Catalogue } from "../../src/connectors/catalogue.ts";
import { DirectCalls } from "../../src/connectors/direct/call.ts";
import { ToolRegistry } from "../../src/connectors/registry.ts";
import { ConnectorError, type ToolAnswer } from "../../src/connectors/source.ts";
import { Budgets } from "../../src/gate/budget.ts";
import { type DirectCallRecords, openDirectCalls } from "../../src/gate/direct/open.ts";
import { reportLostCalls } from "../../src/gate/direct/open-calls.ts";
import type { Tx } from "../../src/store/db.ts";
import { type Gate, gate, until } from "../tasks/support.ts";
import { type CallBench, openCallBench, origin, said, tool } from "./bench.ts";

interface Held extends Gate {
  readonly begun: Promise<void>;
}

let bench: CallBench;
let workspaces: Workspaces;
let agents: Agents;
let budgets: Budgets;
let catalogue: Catalogue;
let calls: DirectCalls;
let direct: DirectCallRecords;
let agent: { readonly id: number; readonly name: string };
/** Holds the builtin tool `own.change` before it changes anything, and tells whether it has. */
let change: Held & { isDone: boolean };
beforeEach(async () => {
  bench = await openCallBench();
  const { db, ledger, clock, ids } = bench;
  workspaces = await openWorkspaces(db, clock, {
    requestsPerMinute: 600,
    concurrentTasks: 60,
    enforcement: "soft",
  });
  agents = createAgents(db, clock, workspaces, systemRandom);
  const begun = gate();
  change = { ...gate(), begun: begun.opened, isDone: false };
  const own = builtinTool({
    name: "own.change",
    title: "Change",
    description: "Changes something that cannot be broken off.",
    input: Type.Object({}, { additionalProperties: false }),
    annotations: {},
    async execute() {
      begun.open();
      await change.opened;
      change.isDone = true;
      return { done: true };
    },
  });
  catalogue = new Catalogue([own]);
  const registry = new ToolRegistry(catalogue);
  const toolPrices = [{ pattern: "paid.*", micros: 5 }];
  budgets = new Budgets({ workspaces, clock, toolPrices, recordCrossing: async () => {} });
  direct = openDirectCalls(db, clock, silentLog);
  const given = { db, ...direct, budgets, ledger, agents, workspaces, registry, clock, ids };
  calls = new DirectCalls({ ...given, log: silentLog });
  agent = await db.tx((tx) =>
    agents.create(tx, 1, "clerk", {
      owner: "tests",
      description: null,
      instructions: null,
      memoryScope: ["support"],
      tierPolicy: OPEN_POLICY,
      tools: ["*"],
      approvals: null,
      approvalsRequired: 1,
      maxSteps: 10,
      creditsPerDay: null,
    }),
  );
});
afterEach(() => bench.close());

/** Calls a tool as the agent. */
async function call(name: string, abort = new AbortController()): Promise<ToolAnswer> {
  const answer = await calls.call(bench.call("tool.call", agent), name, {}, { abort });
  if ("task" in answer) throw new Error("it waits for a person");
  return answer;
}

/** Adds an upstream whose only tool, `up.echo`, runs `answer`. */
const upstream = (answer: CallTool) => catalogue.put(1, origin("up"), ["*"], [tool("echo")], answer);

function outcome() {
  const [intent, ended, ...more] = bench.entries();
  expect(more).toEqual([]);
  expect([intent?.phase, ended?.phase, ended?.ref]).toEqual(["intent", "outcome", intent?.seq]);
  return { outcome: ended?.outcome, code: ended?.code };
}

test("a call whose outcome cannot be written is not answered as done, and the next start reports it", async () => {
  upstream(async () => {
    bench.file.run("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");
    return said("done");
  });
  await expect(call("up.echo")).rejects.toMatchObject({ status: 503, code: "ledger_unavailable" });
  bench.file.run("DROP TRIGGER full");
  await reportLostCalls({ ...bench, histories: await bench.histories(), budgets }, 1);
  expect(outcome()).toEqual({ outcome: "failed", code: "unknown" });
});

test("a call that is still reading its agent when a drain begins is refused", async () => {
  upstream(async () => said("done"));
  const answer = call("up.echo");
  const drained = direct.running.drain();
  await expect(answer).rejects.toMatchObject({ code: "draining" });
  await drained;
  expect(bench.entries()).toEqual([]);
});

type End = [who: string, end: (abort: AbortController) => unknown];
/** Clients word their reasons freely, including as the gateway words its own. */
const BY_CLIENT: End[] = ["cancelled", "shutdown", "agent_stopped", undefined, { code: "shutdown" }].map(
  (reason) => [`the client, saying ${JSON.stringify(reason)}`, (abort) => abort.abort(reason)],
);
const FROM_HERE: End[] = [
  ["a stop of its agent", () => direct.running.stopAgent(1, agent.id)],
  ["the end of the process", () => void direct.stop()],
];

describe("a call of an upstream that ignores cancellation", () => {
  const began = (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    upstream(() => {
      resolve();
      return new Promise(() => {});
    });
    return promise;
  };

  test.each(BY_CLIENT)("is cancelled by %s, with no code except the gateway's own", async (_, end) => {
    const begun = began();
    const abort = new AbortController();
    const answer = call("up.echo", abort);
    await begun;
    end(abort);
    expect(await answer).toMatchObject({ isError: true });
    expect(outcome()).toEqual({ outcome: "cancelled", code: undefined });
  });

  test("is cancelled by a stop of its agent, and refused to the caller with this message", async () => {
    const begun = began();
    const answer = call("up.echo");
    await begun;
    direct.running.stopAgent(1, agent.id);
    await expect(answer).rejects.toMatchObject({ code: "agent_stopped" });
    expect(outcome()).toEqual({ outcome: "cancelled", code: "agent_stopped" });
  });

  test("is cancelled by the end of the process, which waits for its outcome", async () => {
    const begun = began();
    const answer = call("up.echo");
    await begun;
    await direct.stop();
    expect(outcome()).toEqual({ outcome: "cancelled", code: "shutdown" });
    expect(await answer).toMatchObject({ isError: true });
  });

  test("is not ended by a stop of another agent, or of another workspace's agent", async () => {
    const answered = gate();
    const begun = gate();
    upstream(async () => {
      begun.open();
      await answered.opened;
      return said("hi");
    });
    const answer = call("up.echo");
    await begun.opened;
    direct.running.stopAgent(1, agent.id + 1);
    direct.running.stopAgent(2, agent.id);
    answered.open();
    expect(await answer).toEqual(said("hi"));
    expect(outcome()).toEqual({ outcome: "succeeded", code: undefined });
  });
});

describe("a builtin tool that does its work all the same has succeeded, and its caller is told so, though it was ended by", () => {
  test.each([...BY_CLIENT, ...FROM_HERE])("%s", async (_, end) => {
    const abort = new AbortController();
    let isAnswered = false;
    const answer = call("own.change", abort).finally(() => {
      isAnswered = true;
    });
    await change.begun;
    end(abort);
    await new Promise(setImmediate);
    expect([isAnswered, change.isDone]).toEqual([false, false]);
    change.open();
    expect((await answer).structuredContent).toEqual({ done: true });
    expect(outcome()).toEqual({ outcome: "succeeded", code: undefined });
  });
});

describe("the stored output is the caller's whole answer if it is", () => {
  const text = (words: string) => ({ type: "text", text: words });
  const sum = { sum: 3, of: ["a", "b"] };
  async function keptOf(answer: ToolAnswer): Promise<string> {
    upstream(async () => answer);
    expect(await call("up.echo")).toEqual(answer);
    return bench.payload(2, "output") ?? "";
  }

  test.each<[what: string, answer: ToolAnswer]>([
    ["a text and something else as structure", { content: [text("three")], structuredContent: sum }],
    ["a text that is the structure, spaced", { content: [text('{ "n": 3 }')], structuredContent: { n: 3 } }],
    ["an empty text and a structure", { content: [text("")], structuredContent: sum }],
    ["several texts", { content: [text("one"), text("two")] }],
    ["several texts and a structure", { content: [text("one"), text("two")], structuredContent: sum }],
    ["nothing but a structure", { content: [], structuredContent: sum }],
    ["nothing at all", { content: [] }],
    ["an image", { content: [{ type: "image", data: "aGk=", mimeType: "image/png" }] }],
    ["a link with a text", { content: [{ type: "resource_link", text: "one", uri: "file:///x" }] }],
    ["a text that says more", { content: [{ ...text("one"), annotations: { audience: ["user"] } }] }],
    ["a text that is no text", { content: [{ type: "text", text: 3 }] }],
  ])("as it is: %s", async (_, answer) => {
    expect(JSON.parse(await keptOf(answer))).toEqual(answer);
  });

  const json = JSON.stringify(sum);
  test.each<[what: string, answer: ToolAnswer, kept: string]>([
    ["a text that is the structure", { content: [text(json)], structuredContent: sum }, json],
    ["a text", { content: [text("three")] }, "three"],
    ["an empty text", { content: [text("")] }, ""],
    ["a failure's text", { content: [text("no")], isError: true }, "no"],
  ])("as text: %s", async (_, answer, kept) => {
    expect(await keptOf(answer)).toBe(kept);
  });

  test("the message of a connector's failure", async () => {
    upstream(() => Promise.reject(new ConnectorError("unreachable", "The connector up cannot be reached.")));
    const answer = await call("up.echo");
    expect(answer).toEqual({ ...said("The connector up cannot be reached."), isError: true });
    expect(outcome()).toEqual({ outcome: "failed", code: "unreachable" });
    expect(bench.payload(2, "output")).toBe("The connector up cannot be reached.");
  });
});

/** Runs `work` in the transaction just before the one that begins a call, after the call has been checked. */
async function justBefore(work: (tx: Tx) => Promise<unknown>, tool = "paid.echo"): Promise<ToolAnswer> {
  // Fill the cache, so the call reaches its transaction in the same turn.
  await agents.byId(1, agent.id);
  const done = bench.db.tx(work);
  const answer = call(tool);
  // The test looks at the refusal later.
  answer.catch(() => {});
  await done;
  return answer;
}

describe.each(["first", "second"])("the %s call that costs nothing", (which) => {
  let sent = 0;
  beforeEach(async () => {
    sent = 0;
    upstream(async () => {
      sent += 1;
      return said("done");
    });
    if (which === "second") await call("up.echo");
  });

  test.each<[code: string, why: string, work: (tx: Tx) => Promise<unknown>]>([
    ["agent_stopped", "a stop of its agent", async () => void agents.halt(1, agent.id)],
    ["agent_not_found", "its agent's end", (tx) => agents.archive(tx, 1, "clerk")],
    ["tool_forbidden", "another list of tools", (tx) => agents.update(tx, 1, "clerk", () => ({ tools: [] }))],
    ["unknown_tool", "the connector's end", async () => catalogue.drop(1, "up")],
  ])("is refused with %s by %s before it begins", async (code, _why, work) => {
    const before = [sent, bench.entries().length];
    await expect(justBefore(work, "up.echo")).rejects.toMatchObject({ code });
    expect([sent, bench.entries().length]).toEqual(before);
  });

  test("is presented to a person before it begins, if it needs approval", async () => {
    const before = sent;
    calls.askThrough({ dispatch: async () => ({ task: "task_1", answer: () => null, leave: () => {} }) });
    const asks = (tx: Tx) => agents.update(tx, 1, "clerk", () => ({ approvals: ["up.*"] }));
    await expect(justBefore(asks, "up.echo")).rejects.toThrow("it waits for a person");
    expect(sent).toBe(before);
  });

  test("is made if its agent changed only in other ways", async () => {
    expect(
      await justBefore((tx) => agents.update(tx, 1, "clerk", () => ({ maxSteps: 11 })), "up.echo"),
    ).toEqual(said("done"));
  });
});

describe("a call that costs something", () => {
  let sent: Gate[];
  beforeEach(() => {
    sent = [];
    catalogue.put(1, origin("paid"), ["*"], [tool("echo")], async () => {
      const held = gate();
      sent.push(held);
      await held.opened;
      return said("done");
    });
  });
  const outcomes = () =>
    bench
      .entries()
      .filter(({ phase }) => phase !== "intent")
      .map(({ outcome, code, credits }) => [outcome, code ?? "", credits ?? 0]);

  test.each<[code: string, why: string, work: (tx: Tx) => Promise<unknown>]>([
    ["draining", "a drain", async () => void direct.running.drain()],
    ["agent_stopped", "a stop of its agent", async () => void agents.halt(1, agent.id)],
    ["agent_stopped", "a stop of its workspace", async () => void workspaces.halt(1)],
    ["agent_not_found", "its agent's end", (tx) => agents.archive(tx, 1, "clerk")],
    ["tool_forbidden", "another list of tools", (tx) => agents.update(tx, 1, "clerk", () => ({ tools: [] }))],
    ["unknown_tool", "the connector's end", async () => catalogue.drop(1, "paid")],
  ])("is refused with %s by %s before it begins, and nothing of it is kept", async (code, _why, work) => {
    await bench.db.tx((tx) => workspaces.change(tx, 1, { creditsPerMonth: 5 }));
    await expect(justBefore(work)).rejects.toMatchObject({ code });
    expect(sent).toHaveLength(0);
    expect(bench.entries()).toEqual([]);
    expect(budgets.reservations).toBe(0);
    await direct.running.drain();
  });

  test("is presented to a person before it begins, once, if it needs approval", async () => {
    const asked: string[] = [];
    calls.askThrough({
      async dispatch(_call, { tool }) {
        asked.push(tool);
        return { task: "task_1", answer: () => null, leave: () => {} };
      },
    });
    await bench.db.tx((tx) => workspaces.change(tx, 1, { creditsPerMonth: 5 }));
    const answer = justBefore((tx) => agents.update(tx, 1, "clerk", () => ({ approvals: ["paid.*"] })));
    await expect(answer).rejects.toThrow("it waits for a person");
    expect(asked).toEqual(["paid.echo"]);
    expect(sent).toHaveLength(0);
    expect(bench.entries()).toEqual([]);
    expect(budgets.reservations).toBe(0);
  });

  test("is made with the tool that its connector offers by then under that name", async () => {
    const answer = await justBefore(async () =>
      catalogue.put(1, origin("paid"), ["*"], [tool("echo")], async () => said("new")),
    );
    expect(answer).toEqual(said("new"));
    expect(sent).toHaveLength(0);
    expect(outcomes()).toEqual([["succeeded", "", 5]]);
  });

  test("does not delay a drain while waiting for its budget: it is refused at once, and a call in flight continues", async () => {
    await bench.db.tx((tx) => workspaces.change(tx, 1, { creditsPerMonth: 5 }));
    const out = call("paid.echo");
    await until(() => sent.length === 1);
    const waits = call("paid.echo");
    await bench.db.tx(async () => {});
    const drained = direct.running.drain();
    await expect(waits).rejects.toMatchObject({ status: 503, code: "draining" });
    sent[0]?.open();
    expect(await out).toEqual(said("done"));
    await drained;
    expect(sent).toHaveLength(1);
    expect(outcomes()).toEqual([["succeeded", "", 5]]);
    expect(budgets.reservations).toBe(0);
  });

  test("can end its wait for a budget, which a free call does not need", async () => {
    upstream(async () => said("free"));
    const own = new AbortController();
    let made = 0;
    const Usual = globalThis.AbortController;
    globalThis.AbortController = class extends Usual {
      constructor() {
        super();
        made += 1;
      }
    };
    try {
      expect(await call("up.echo", own)).toEqual(said("free"));
      expect(made).toBe(0);
      const paid = call("paid.echo", own);
      await until(() => sent.length === 1);
      expect(made).toBe(1);
      sent[0]?.open();
      expect(await paid).toEqual(said("done"));
    } finally {
      globalThis.AbortController = Usual;
    }
  });

  describe("keeps its reservation while its outcome cannot be written", () => {
    const refuse = () =>
      bench.file.run("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");
    const allow = () => bench.file.run("DROP TRIGGER full");
    const charged = () => bench.file.query("SELECT SUM(credits) AS credits FROM spending").get();

    beforeEach(async () => {
      await bench.db.tx((tx) => workspaces.change(tx, 1, { creditsPerMonth: 10 }));
      const out = call("paid.echo");
      await until(() => sent.length === 1);
      refuse();
      sent[0]?.open();
      await expect(out).rejects.toMatchObject({ code: "ledger_unavailable" });
      expect(budgets.reservations).toBe(1);
    });

    test("until it can: it is then charged once, without a restart, and not again by the next start", async () => {
      for (let seconds = 0; seconds < 3; seconds++) {
        bench.clock.advance(1_000);
        await expect(
          bench.ledger.record(1, bench.call("tool.call", agent).draft("failed")),
        ).rejects.toThrow();
      }
      expect([budgets.reservations, outcomes()]).toEqual([1, []]);
      allow();
      bench.clock.advance(1_000);
      await until(() => budgets.reservations === 0);
      expect(outcomes()).toEqual([["succeeded", "", 5]]);
      expect(bench.entries().at(-1)?.detail).toEqual({ duration_ms: expect.any(Number), late_ms: 4_000 });
      await reportLostCalls({ ...bench, histories: await bench.histories(), budgets }, 1);
      await direct.stop();
      expect(outcomes()).toEqual([["succeeded", "", 5]]);
      expect(charged()).toEqual({ credits: 5 });
    });

    test("until the next start if the process ends first: it is then charged once", async () => {
      await direct.stop();
      allow();
      bench.clock.advance(10_000);
      await reportLostCalls({ ...bench, histories: await bench.histories(), budgets }, 1);
      expect(outcomes()).toEqual([["failed", "unknown", 5]]);
      expect(charged()).toEqual({ credits: 5 });
    });

    test("until the stop if the store can be written by then", async () => {
      allow();
      await direct.stop();
      expect([outcomes(), charged(), budgets.reservations]).toEqual([
        [["succeeded", "", 5]],
        { credits: 5 },
        0,
      ]);
    });
  });

  test("costs nothing if cancelled before it is sent, and its price once sent", async () => {
    const abort = new AbortController();
    abort.abort("cancelled");
    expect((await call("paid.echo", abort)).isError).toBe(true);
    expect(sent).toHaveLength(0);
    const paid = call("paid.echo");
    await until(() => sent.length === 1);
    sent[0]?.open();
    await paid;
    expect(outcomes()).toEqual([
      ["cancelled", "", 0],
      ["succeeded", "", 5],
    ]);
    expect(budgets.reservations).toBe(0);
  });

  test.each(BY_CLIENT)("is cancelled by %s while waiting for its budget, and is not sent", async (_, end) => {
    await bench.db.tx((tx) => workspaces.change(tx, 1, { creditsPerMonth: 5 }));
    const out = call("paid.echo");
    await until(() => sent.length === 1);
    const abort = new AbortController();
    const waits = call("paid.echo", abort);
    await bench.db.tx(async () => {});
    end(abort);
    expect((await waits).isError).toBe(true);
    sent[0]?.open();
    await out;
    expect(sent).toHaveLength(1);
    expect(outcomes()).toEqual([
      ["denied", "cancelled", 0],
      ["succeeded", "", 5],
    ]);
    expect(budgets.reservations).toBe(0);
  });
});
