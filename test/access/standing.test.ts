import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Agents, createAgents } from "../../src/access/agents.ts";
import { OPEN_POLICY } from "../../src/access/tier-policy.ts";
import { openWorkspaces } from "../../src/access/workspaces.ts";
import { systemRandom } from "../../src/base/ids.ts";
import type { Db } from "../../src/store/db.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { FakeClock } from "../support/clock.ts";
import { SEALS } from "../support/seals.ts";

const LIMITS = { requestsPerMinute: 600, concurrentTasks: 60, enforcement: "soft" } as const;
const FIELDS = {
  ...{ owner: "tests", description: null, instructions: null, memoryScope: ["/"], tierPolicy: OPEN_POLICY },
  ...{ tools: ["*"], approvals: null, approvalsRequired: 1, maxSteps: 20, creditsPerDay: null },
};

let directory: string;
let db: Db;
let agents: Agents;
let workspace: number;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "gatehouse-standing-"));
  db = openSqlite(join(directory, "gatehouse.db"), { seals: SEALS, rerunWork: true });
  const clock = new FakeClock();
  const workspaces = await openWorkspaces(db, clock, LIMITS);
  workspace = workspaces.find("default")?.id ?? 0;
  agents = createAgents(db, clock, workspaces, systemRandom);
});
afterAll(async () => {
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

const create = (name: string) => db.tx(1, (tx) => agents.create(tx, workspace, name, FIELDS));

test("an unknown agent, or another workspace's, has no standing", async () => {
  const { id } = await create("here");
  expect(await agents.standing(workspace, 10_000)).toBeUndefined();
  expect(await agents.standing(workspace + 1, id)).toBeUndefined();
});

test("an archived agent counts as archived until another agent takes its name", async () => {
  const { id } = await create("name");
  await db.tx(1, (tx) => agents.archive(tx, workspace, "name"));
  expect(await agents.standing(workspace, id)).toEqual({ id, name: "name", status: "archived", version: 1 });
  const next = await create("name");
  const standing = { id: next.id, name: "name", status: "active", version: 1 } as const;
  expect(await agents.standing(workspace, id)).toEqual(standing);
  expect(await agents.standing(workspace, next.id)).toEqual(standing);
});

test("a halt is reported with the agent's id, and is visible while it lasts", async () => {
  const told: object[] = [];
  const { id } = await create("held");
  const end = agents.agentChanged.listen((change) => void told.push(change));
  const halt = agents.halt(workspace, id);
  expect(await agents.standing(workspace, id)).toMatchObject({ status: "stopped" });
  halt.lift();
  expect(await agents.standing(workspace, id)).toMatchObject({ status: "active" });
  end();
  expect(told).toEqual([
    { workspaceId: workspace, id },
    { workspaceId: workspace, id },
  ]);
});
