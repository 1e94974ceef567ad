/** Claims of nodes on tasks, as rows: whatever nodes do at the same time, each task belongs to at most one of them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Signal } from "../../src/base/signal.ts";
import type { Db } from "../../src/store/db.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { ClaimLost } from "../../src/tasks/claims/claims.ts";
import { SharedClaims } from "../../src/tasks/claims/shared/claim-rows.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";

const WORKSPACE = 1;
const BUS = { send() {}, listen: () => () => {}, missed: new Signal<void>(), deafForMs: 0 };

/** A node that remembers what it believes to have claimed. */
interface TestNode {
  id: string;
  readonly db: Db;
  readonly claims: SharedClaims;
  /** The store for each task, as it was when this node began with it. */
  readonly fences: Map<string, Db>;
}

describe.skipIf(missingPostgres !== undefined)("claims", () => {
  let database: TestDatabase;
  const nodes: TestNode[] = [];
  let made = 0;

  const newId = () => `node_${++made}`;

  async function join(node: TestNode): Promise<void> {
    node.id = newId();
    await database.query("INSERT INTO nodes (id, version, since, seen_at, tasks) VALUES ($1, '1', 0, 0, 0)", [
      node.id,
    ]);
  }

  beforeAll(async () => {
    database = await createDatabase();
    for (let index = 0; index < 3; index++) {
      const db = await openPostgres({ url: database.url });
      const node: TestNode = {
        ...{ id: "", db, fences: new Map() },
        claims: new SharedClaims(db, {
          get id() {
            return node.id;
          },
          bus: BUS,
        }),
      };
      await join(node);
      nodes.push(node);
    }
  });

  afterAll(async () => {
    for (const { db } of nodes) await db.close();
    await database.drop();
  });

  function nodeAt(index: number): TestNode {
    const node = nodes[index];
    if (!node) throw new Error("there is no such node");
    return node;
  }

  const key = (task: number) => `task_${task}`;

  /** What a node does; it returns what it has newly claimed. */
  const ACTIONS: Readonly<Record<string, (node: TestNode, task: number) => Promise<readonly string[]>>> = {
    async adopt({ claims }) {
      return (await claims.adopt(4)).map(({ id }) => id);
    },
    async take({ claims }, task) {
      const work = { workspaceId: WORKSPACE, id: key(task) };
      const owner = await claims.owner(work);
      return owner && (await claims.take(work, owner)) ? [work.id] : [];
    },
    async release(node, task) {
      const { db, claims } = node;
      node.fences.delete(key(task));
      await db.tx(null, async (tx) => claims.release(tx, [{ workspaceId: WORKSPACE, id: key(task) }], null));
      return [];
    },
    async giveUp(node) {
      await database.query("DELETE FROM nodes WHERE id = $1", [node.id]);
      // It goes on with its fences, as if it did not know yet.
      await join(node);
      return [];
    },
    async work(node, task) {
      const fenced = node.fences.get(key(task));
      try {
        await fenced?.tx(null, (tx) => tx.run("UPDATE meta SET value = value WHERE key = $1", [key(task)]));
      } catch (error) {
        if (!(error instanceof ClaimLost)) throw error;
        node.fences.delete(key(task));
      }
      return [];
    },
  };

  test("belong to one node at a time, which alone can write for its task", async () => {
    const step = fc.record({
      node: fc.integer({ min: 0, max: 2 }),
      task: fc.integer({ min: 0, max: 5 }),
      action: fc.constantFrom(...Object.keys(ACTIONS)),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { maxLength: 12 }),
        async (rounds) => {
          await database.query("DELETE FROM task_claims");
          for (const node of nodes) node.fences.clear();
          for (let task = 0; task < 6; task++) {
            const node = nodeAt(task % 3);
            await node.db.tx(null, async (tx) => node.claims.add(tx, WORKSPACE, key(task)));
            node.fences.set(key(task), node.claims.fence(node.db, WORKSPACE, key(task)));
          }
          for (const round of rounds) {
            await Promise.all(
              round.map(async ({ node: index, task, action }) => {
                const node = nodeAt(index);
                for (const id of (await ACTIONS[action]?.(node, task)) ?? []) {
                  node.fences.set(id, node.claims.fence(node.db, WORKSPACE, id));
                }
              }),
            );
            // Among all that believe to have a task, at most one can write for it.
            for (let task = 0; task < 6; task++) {
              const able = await Promise.all(
                nodes.map(async ({ fences }) => {
                  const fenced = fences.get(key(task));
                  if (!fenced) return false;
                  return fenced
                    .tx(null, async () => true)
                    .catch((error: unknown) => {
                      if (error instanceof ClaimLost) return false;
                      throw error;
                    });
                }),
              );
              expect(able.filter(Boolean).length).toBeLessThanOrEqual(1);
            }
          }
          // None is forgotten: all can be taken once their nodes are gone.
          await database.query("DELETE FROM nodes");
          for (const node of nodes) await join(node);
          expect(await nodeAt(0).claims.adopt(100)).toHaveLength(6);
        },
      ),
      { numRuns: 15 },
    );
  });

  test("cannot be taken in the middle of a transaction that relies on them", async () => {
    const [first, second] = [nodeAt(0), nodeAt(1)];
    const work = { workspaceId: WORKSPACE, id: "task_held" };
    await first.db.tx(null, async (tx) => first.claims.add(tx, work.workspaceId, work.id));
    const order: string[] = [];
    const begun = Promise.withResolvers<void>();
    const written = first.claims.fence(first.db, work.workspaceId, work.id).tx(null, async (tx) => {
      await tx.get("SELECT 1");
      begun.resolve();
      await tx.get("SELECT pg_sleep(0.3)");
      order.push("written");
    });
    await begun.promise;
    const owner = await second.claims.owner(work);
    if (!owner) throw new Error("nobody has the claim");
    expect(await second.claims.take(work, owner)).toBe(true);
    order.push("taken");
    await written;
    expect(order).toEqual(["written", "taken"]);
    await expect(
      first.claims.fence(first.db, work.workspaceId, work.id).tx(null, async () => {}),
    ).rejects.toThrow(ClaimLost);
  });
});
