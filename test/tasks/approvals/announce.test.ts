/** A call is announced while a person on another node may already be deciding about it. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { BeforeToolCall } from "../../../src/agents/index.ts";
import { EventHub } from "../../../src/tasks/events/hub.ts";
import { RunJournal } from "../../../src/tasks/run/journal.ts";
import { TaskSignals } from "../../../src/tasks/signals.ts";
import { type LedgerBench, openLedger } from "../../ledger/support.ts";
import { insertBareTask } from "../bare-task.ts";

const TASK = { workspaceId: 1, id: "task_1", agent: "a", tier: 1 };
const CALL: BeforeToolCall = {
  ...{ id: "call_1", tool: "mail.send", arguments: { to: "b" }, step: 1 },
  signal: new AbortController().signal,
};

let bench: LedgerBench;
beforeEach(async () => {
  bench = await openLedger();
  await insertBareTask(bench.db, "running", TASK.id);
});
afterEach(() => bench.close());

describe("an announced call", () => {
  const open = () => {
    const hub = new EventHub(bench.db);
    const signals = new TaskSignals();
    let announced = 0;
    signals.approvalChanged.listen(() => announced++);
    const log = hub.open(TASK.id, 2);
    const hooks = { ending: async () => {}, approvalRequired: async () => {} };
    const journal = new RunJournal({ db: bench.db, hooks, hub, signals }, TASK, log, new Map());
    return { log, journal, announced: () => announced };
  };

  test("is published with the id that is stored", async () => {
    const { log, journal, announced } = open();
    log.publish("task.started", { model: "m", tier: 1 });
    await bench.db.tx(1, (tx) => journal.announce(tx, CALL));
    expect([log.nextId, log.savedUpTo, announced()]).toEqual([4, 3, 1]);
  });

  test("is not published a second time if a decision on another node was stored first", async () => {
    const { log, journal, announced } = open();
    await bench.db.tx(1, async (tx) => {
      // As if the other node's message arrived between the commit and its answer. The call has id 2, the decision has 3.
      tx.onCommit(() => log.skipTo(4));
      await journal.announce(tx, CALL);
    });
    expect([log.nextId, log.savedUpTo, log.after(3).length, announced()]).toEqual([4, 3, 0, 1]);
  });

  test("is announced although its readers have left because the process is stopping", async () => {
    const { log, journal, announced } = open();
    await bench.db.tx(1, async (tx) => {
      tx.onCommit(() => log.close(null));
      await journal.announce(tx, CALL);
    });
    expect(announced()).toBe(1);
  });
});
