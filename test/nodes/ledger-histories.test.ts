/** What each node knows of the ledgers includes what other nodes have appended. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { EntryDraft } from "../../src/ledger/entry.ts";
import { LedgerChanged } from "../../src/ledger/ledger-changed.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";
import { type LedgerNode, type LedgerNodes, openLedgerNodes } from "./ledger-support.ts";

const CALL: EntryDraft = {
  ...{ phase: "intent", action: "tool.call", outcome: "pending", channel: "rest", actor: "token:tok_1" },
};

function ended(action: "token.revoke" | "token.rotate", token: string, rotation?: number): EntryDraft {
  const detail = { token, rotation };
  return { phase: "single", action, outcome: "succeeded", channel: "rest", actor: "token:tok_1", detail };
}

describe.skipIf(missingPostgres !== undefined)("a node's history", () => {
  let bench: LedgerNodes;
  let one: LedgerNode;
  let two: LedgerNode;
  beforeEach(async () => {
    bench = await openLedgerNodes();
    [one, two] = [await bench.open(), await bench.open()];
  });
  afterEach(() => bench.close());

  const isOutdated = ({ histories }: LedgerNode, id: string, rotations = 0) =>
    histories.isOutdated({ workspace_id: 1, id, rotations });

  test("includes a token that another node has revoked, soon by itself", async () => {
    await one.ledger.record(1, ended("token.revoke", "tok_a"));
    await until(() => isOutdated(two, "tok_a"));
    expect(isOutdated(one, "tok_a")).toBe(true);
  });

  test("takes entries of all nodes in the order of the ledger", async () => {
    const seq = await one.ledger.record(1, CALL);
    await two.ledger.record(1, { ...CALL, phase: "outcome", outcome: "succeeded", ref: seq });
    const left = await two.ledger.record(1, CALL);
    for (const node of [one, two]) {
      await node.histories.catchUp(1);
      expect([...node.histories.of(1).openCalls]).toEqual([left]);
    }
  });

  test("catches up over many blocks while this node appends", async () => {
    const drafts = Array.from({ length: 700 }, (_, at) => ended("token.revoke", `tok_${at}`));
    await Promise.all(drafts.map((draft) => one.ledger.record(1, draft)));
    await Promise.all([
      two.histories.catchUp(1),
      ...drafts.map((_, at) => two.ledger.record(1, ended("token.revoke", `tok_${700 + at}`))),
    ]);
    for (const node of [one, two]) {
      await node.histories.catchUp(1);
      expect(node.histories.of(1).endedTokens).toBe(1_400);
    }
  });

  test("includes the ledger of a workspace that another node has created", async () => {
    bench.workspaces.push({ id: 3, name: "w3" });
    await one.db.tx(null, async (tx) => {
      await tx.run("INSERT INTO workspaces (id, name, created_at) VALUES (3, 'w3', 0)");
      await one.ledger.begin(tx, 3);
      await one.ledger.append(tx, 3, CALL);
    });
    const own = await two.ledger.record(3, CALL);
    await two.histories.catchUp(3);
    expect([...two.histories.of(3).openCalls]).toEqual([1, own]);
  });

  test("gives a token that a node creates the rotations of a renewal on another node at once", async () => {
    await one.ledger.record(1, ended("token.rotate", "tok_a", 4));
    const floor = await two.db.tx(1, async (tx) => {
      const raised = await two.histories.of(1).raiseFloor(tx);
      await two.ledger.append(tx, 1, {
        ...{
          phase: "single",
          action: "token.renew",
          outcome: "succeeded",
          channel: "system",
          actor: "system",
        },
        detail: { floor: raised },
      });
      return raised;
    });
    expect(floor).toBe(5);
    expect(await one.db.tx(1, (tx) => one.histories.of(1).firstRotations(tx))).toBe(5);
  });

  test("refuses to catch up over entries that somebody has changed, and reports them", async () => {
    const seq = await one.ledger.record(1, ended("token.revoke", "tok_a"));
    await bench.database.query("ALTER TABLE ledger DISABLE TRIGGER ALL");
    await bench.database.query("GRANT UPDATE ON ledger TO CURRENT_USER");
    await bench.database.query(
      `UPDATE ledger SET bytes = replace(bytes, 'tok_a', 'tok_b') WHERE workspace_id = 1 AND seq = ${seq}`,
    );
    await expect(two.histories.catchUp(1)).rejects.toThrow(LedgerChanged);
    expect(two.found).toContain("entry_changed");
  });

  test("is stored by any of them, and never replaced by a shorter one", async () => {
    const many = async ({ ledger }: LedgerNode, name: string) => {
      const drafts = Array.from({ length: 4_200 }, () => ended("token.revoke", name));
      await Promise.all(drafts.map((draft) => ledger.record(1, draft)));
    };
    await many(one, "tok_a");
    await two.histories.catchUp(1);
    await many(one, "tok_b");
    await one.histories.catchUp(1);
    await Promise.all([one.histories.keepHouse(), two.histories.keepHouse()]);
    const [row] = await bench.database.query<{ value: string }>(
      "SELECT value FROM meta WHERE key = 'ledger_history:1'",
    );
    const stored = JSON.parse(row?.value ?? "{}") as { size: number };
    expect(stored.size).toBeGreaterThanOrEqual(8_400);
    await two.histories.of(1).read();
    const third = await bench.open();
    expect(isOutdated(third, "tok_b")).toBe(true);
  }, 30_000);
});
