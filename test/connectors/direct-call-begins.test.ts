/** Calls outside of tasks are checked again when they begin, and wait for their budget. */
import { beforeEach, describe, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import type { ToolAnswer } from "../../src/connectors/source.ts";
import { localCallOwners } from "../../src/gate/direct/call-owners.ts";
import { reportLostCalls } from "../../src/gate/direct/open-calls.ts";
import type { Tx } from "../../src/store/db.ts";
import { type Gate, gate, until } from "../tasks/support.ts";
import { origin, said, tool } from "./bench.ts";
import {
  agent,
  agents,
  BY_CLIENT,
  bench,
  budgets,
  call,
  calls,
  catalogue,
  direct,
  upstream,
  useDirectCalls,
  workspaces,
} from "./direct-call-support.ts";

useDirectCalls();

/** Runs `work` in the transaction just before the one that begins a call, after the call has been checked. */
async function justBefore(work: (tx: Tx) => Promise<unknown>, tool = "paid.echo"): Promise<ToolAnswer> {
  // Fill the cache, so the call reaches its transaction in the same turn.
  await agents.byId(1, agent.id);
  const done = bench.db.tx(1, work);
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
  ])("is refused with %s by %s before it begins, and leaves nothing behind", async (code, _why, work) => {
    await bench.db.tx(1, (tx) => workspaces.change(tx, 1, { creditsPerMonth: 5 }));
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
    await bench.db.tx(1, (tx) => workspaces.change(tx, 1, { creditsPerMonth: 5 }));
    const answer = justBefore((tx) => agents.update(tx, 1, "clerk", () => ({ approvals: ["paid.*"] })));
    await expect(answer).rejects.toThrow("it waits for a person");
    expect(asked).toEqual(["paid.echo"]);
    expect(sent).toHaveLength(0);
    expect(bench.entries()).toEqual([]);
    expect(budgets.reservations).toBe(0);
  });

  test("is made with the tool that its connector offers under that name at that time", async () => {
    const answer = await justBefore(async () =>
      catalogue.put(1, origin("paid"), ["*"], [tool("echo")], async () => said("new")),
    );
    expect(answer).toEqual(said("new"));
    expect(sent).toHaveLength(0);
    expect(outcomes()).toEqual([["succeeded", "", 5]]);
  });

  test("does not delay a drain while waiting for its budget: it is refused at once, and a call in flight continues", async () => {
    await bench.db.tx(1, (tx) => workspaces.change(tx, 1, { creditsPerMonth: 5 }));
    const out = call("paid.echo");
    await until(() => sent.length === 1);
    const waits = call("paid.echo");
    await bench.db.tx(1, async () => {});
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
      await bench.db.tx(1, (tx) => workspaces.change(tx, 1, { creditsPerMonth: 10 }));
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
      await reportLostCalls(
        { ...bench, owners: localCallOwners(await bench.histories()), budgets, log: silentLog },
        1,
      );
      await direct.stop();
      expect(outcomes()).toEqual([["succeeded", "", 5]]);
      expect(charged()).toEqual({ credits: 5 });
    });

    test("until the next start if the process ends first: it is then charged once", async () => {
      await direct.stop();
      allow();
      bench.clock.advance(10_000);
      await reportLostCalls(
        { ...bench, owners: localCallOwners(await bench.histories()), budgets, log: silentLog },
        1,
      );
      expect(outcomes()).toEqual([["failed", "unknown", 5]]);
      expect(charged()).toEqual({ credits: 5 });
    });

    test("until the stop, if the store can be written by then", async () => {
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
    await bench.db.tx(1, (tx) => workspaces.change(tx, 1, { creditsPerMonth: 5 }));
    const out = call("paid.echo");
    await until(() => sent.length === 1);
    const abort = new AbortController();
    const waits = call("paid.echo", abort);
    await bench.db.tx(1, async () => {});
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
