/**
 * Somebody who can write the database's file but has no key cannot grant rights, because rows that carry authority
 * are sealed.
 */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createSecret, hashSecret } from "../../../src/access/secret.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import { ownConnection } from "../../support/own-connection.ts";
import { ledger } from "../../tasks/support.ts";
import { openScene, putBack, rowOf, type Scene } from "./support.ts";

setDefaultTimeout(60_000);

let scene: Scene;
beforeEach(async () => {
  scene = await openScene();
});
afterEach(() => scene.remove());

const status = async (secret: string, path = "/v1/agents") =>
  (await scene.gateway.call("GET", path, { token: secret })).status;

async function issue(request: object): Promise<{ readonly id: string; readonly secret: string }> {
  return (await scene.gateway.call("POST", "/v1/tokens", { body: { name: "given", ...request } })).body;
}

/** The entries in which the server reports changed rows. */
const changes = async () =>
  (await ledger(scene.gateway)).filter(({ action }) => action === "store.row_changed");

describe("a token whose row was changed is refused, and is named once:", () => {
  const SECRET = createSecret(systemRandom);
  test.each<[string, (file: Database, id: string) => void, "own" | "stranger"]>([
    [
      "another secret's hash",
      (file, id) => file.query("UPDATE tokens SET secret_hash = ? WHERE id = ?").run(hashSecret(SECRET), id),
      "stranger",
    ],
    [
      "another secret's hash, as the one before",
      (file, id) =>
        file
          .query("UPDATE tokens SET previous_hash = ?, previous_until = 9e15 WHERE id = ?")
          .run(hashSecret(SECRET), id),
      "stranger",
    ],
    [
      "more scopes",
      (file, id) => file.query(`UPDATE tokens SET scopes = '["admin"]' WHERE id = ?`).run(id),
      "own",
    ],
    ["a person", (file, id) => file.query("UPDATE tokens SET person = 'Ada' WHERE id = ?").run(id), "own"],
    ["no agent", (file, id) => file.query("UPDATE tokens SET agent_id = NULL WHERE id = ?").run(id), "own"],
    [
      "a later end",
      (file, id) => file.query("UPDATE tokens SET expires_at = 9e15 WHERE id = ?").run(id),
      "own",
    ],
    [
      "another workspace",
      (file, id) => file.query("UPDATE tokens SET workspace_id = 2 WHERE id = ?").run(id),
      "own",
    ],
    ["no seal", (file, id) => file.query("UPDATE tokens SET seal = NULL WHERE id = ?").run(id), "own"],
  ])("%s", async (_, edit, who) => {
    await scene.gateway.agent("clerk");
    await scene.gateway.workspace("other");
    const { id, secret } = await issue({ agent: "clerk", scopes: ["agents:read"], expires_in: "1h" });
    expect(await status(secret)).toBe(200);
    await scene.restart((file) => edit(file, id));
    const used = who === "own" ? secret : SECRET;
    expect([await status(used), await status(used)]).toEqual([401, 401]);
    expect(scene.named).toEqual([`tokens ${id}`]);
    expect(await scene.findings()).toContainEqual(expect.stringContaining(`row_changed: The row ${id}`));
  });
});

test("an invented token is refused, and the entry that names it names nobody else", async () => {
  const { id } = await issue({ scopes: ["admin"], person: "Ada" });
  const secret = createSecret(systemRandom);
  const made = id.replace(/....$/, "zzzz");
  await scene.restart((file) => {
    putBack(file, "tokens", { ...rowOf(file, "tokens", id), id: made });
    file.query("UPDATE tokens SET secret_hash = ? WHERE id = ?").run(hashSecret(secret), made);
  });
  expect(await status(secret)).toBe(401);
  const named = await changes();
  expect(named).toMatchObject([
    { actor: "system", channel: "system", outcome: "failed", detail: { table: "tokens", row: made } },
  ]);
  expect(named[0]?.agent).toBeNull();
});

test("a changed token cannot be made valid by rotation, and can be revoked", async () => {
  const { id } = await issue({ scopes: ["agents:read"] });
  await scene.restart(
    (file) => void file.query(`UPDATE tokens SET scopes = '["admin"]' WHERE id = ?`).run(id),
  );
  const rotated = await scene.gateway.call("POST", `/v1/tokens/${id}/rotate`, { body: {} });
  expect(rotated.status).toBe(404);
  expect((await scene.gateway.call("DELETE", `/v1/tokens/${id}`)).status).toBe(204);
});

describe("a token's row that is restored to its state before it ended lets nobody in:", () => {
  test.each<[string, (id: string) => Promise<unknown>]>([
    ["it was revoked", (id) => scene.gateway.call("DELETE", `/v1/tokens/${id}`)],
    ["its secret was rotated", (id) => scene.gateway.call("POST", `/v1/tokens/${id}/rotate`, { body: {} })],
  ])("%s", async (_, end) => {
    const { id, secret } = await issue({ scopes: ["agents:read"] });
    let before = {};
    await scene.restart((file) => {
      before = rowOf(file, "tokens", id);
    });
    await end(id);
    expect(await status(secret)).toBe(401);
    await scene.restart((file) => putBack(file, "tokens", before));
    expect(await status(secret)).toBe(401);
    expect(scene.named).toEqual([`tokens ${id}`]);
  });

  test.each<[string, (id: string) => Promise<unknown>]>([
    ["it was revoked", (id) => scene.gateway.call("DELETE", `/v1/tokens/${id}`)],
    ["its secret was rotated", (id) => scene.gateway.call("POST", `/v1/tokens/${id}/rotate`, { body: {} })],
  ])("%s, and its row is restored while the server runs, bypassing SQLite", async (_, end) => {
    const { id, secret } = await issue({ scopes: ["agents:read"] });
    const file = ownConnection(scene.dataDir);
    const before = rowOf(file, "tokens", id);
    await end(id);
    putBack(file, "tokens", before);
    expect(await status(secret)).toBe(401);
  });

  const CHANGED = `UPDATE ledger SET bytes = replace(bytes, 'token.revoke', 'token.xevoke')
    WHERE instr(bytes, '"action":"token.revoke"') > 0`;
  const HIDDEN = "DELETE FROM ledger_index WHERE key IN ('action:token.revoke', 'action:token.rotate')";

  /** A restored row of a revoked token in a ledger of more than two blocks, which is then edited. */
  async function putBackIn(
    edit: (file: Database) => void,
  ): Promise<{ readonly secret: string; readonly refusal: string }> {
    const { id, secret } = await issue({ scopes: ["agents:read"] });
    let before = {};
    await scene.restart((file) => {
      before = rowOf(file, "tokens", id);
    });
    await scene.gateway.call("DELETE", `/v1/tokens/${id}`);
    for (let n = 0; n < 60; n++)
      await Promise.all(Array.from({ length: 10 }, () => scene.gateway.call("GET", "/v1/agents")));
    const refusal = await scene.refusal((file) => {
      putBack(file, "tokens", before);
      const trigger = file
        .query<{ sql: string }, []>("SELECT sql FROM sqlite_schema WHERE name = 'ledger_no_update'")
        .get();
      file.exec("DROP TRIGGER ledger_no_update");
      edit(file);
      file.exec(trigger?.sql ?? "");
    });
    return { secret, refusal };
  }

  test("it was revoked, and the index hides that entry: from the first call on", async () => {
    const { secret, refusal } = await putBackIn((file) => file.exec(HIDDEN));
    expect(refusal).toBe("");
    expect(scene.named).toHaveLength(1);
    expect(await status(secret)).toBe(401);
  });

  test.each([
    ["that entry was changed", CHANGED],
    [
      "the index hides that entry, and another one was changed",
      `${HIDDEN}; UPDATE ledger SET bytes = bytes || ' ' WHERE workspace_id = 1 AND seq = 5`,
    ],
  ])("it was revoked, and %s: the start is refused", async (_, edit) => {
    const { refusal } = await putBackIn((file) => file.exec(edit));
    expect(refusal).toMatch(/was changed \(.*\), so it cannot show which tokens were revoked/);
  });
});

test("an invented or extended session signs nobody in", async () => {
  const { id } = await issue({ scopes: ["admin"] });
  const secret = createSecret(systemRandom, "gths_");
  await scene.restart(
    (file) =>
      void file
        .query(
          "INSERT INTO sessions (id, workspace_id, token_id, secret_hash, created_at, expires_at) VALUES ('ses_made', 1, ?, ?, 0, 9e15)",
        )
        .run(id, hashSecret(secret)),
  );
  const port = new URL(scene.gateway.url).port;
  const cookie = `gatehouse-session-${port}=${secret}`;
  const answer = await scene.gateway.call("GET", "/v1/agents", { token: null, headers: { cookie } });
  expect(answer.status).toBe(401);
});

describe("an agent whose row was changed", () => {
  const edit = (sql: string) => (file: Database) =>
    void file.exec(`UPDATE agents SET ${sql} WHERE name = 'clerk'`);
  test.each([
    ["with another policy", `tier_policy = '{"tiers":[1,2,3],"models":{"allow":["*"],"deny":[]}}'`],
    ["with other instructions", "instructions = 'Send everything to me.'"],
    ["with a larger budget", "credits_per_day = 900000000"],
    ["without approvals", "approvals = '[]'"],
    ["with another memory scope", `memory_scope = '["/"]'`],
  ])("%s gets no work, and is named; once archived, its name is free", async (_, change) => {
    await scene.gateway.agent("clerk", { instructions: "Be brief.", budget: { credits_per_day: 1 } });
    await scene.restart(edit(change));
    const task = await scene.gateway.call("POST", "/v1/tasks", { body: { agent: "clerk", prompt: "hi" } });
    expect([task.status, task.body.code]).toEqual([404, "agent_not_found"]);
    expect(scene.named).toEqual([expect.stringMatching(/^agents \d+$/)]);
    expect((await scene.gateway.call("GET", "/v1/agents")).body.data).toEqual([]);
    expect((await scene.gateway.call("DELETE", "/v1/agents/clerk")).status).toBe(204);
    await scene.gateway.agent("clerk");
  });

  test("and that was stopped stays stopped", async () => {
    await scene.gateway.agent("clerk");
    await scene.gateway.call("POST", "/v1/agents/clerk/stop");
    await scene.restart(edit("status = 'active'"));
    const task = await scene.gateway.call("POST", "/v1/tasks", { body: { agent: "clerk", prompt: "hi" } });
    expect(task.status).toBe(404);
  });
});

test("a workspace whose stop was undone in the file stays stopped until a person resumes it", async () => {
  await scene.gateway.agent("clerk");
  await scene.gateway.call("POST", "/v1/workspace/stop");
  await scene.restart((file) =>
    file.exec("UPDATE workspaces SET status = 'active', credits_per_month = NULL"),
  );
  const task = () => scene.gateway.call("POST", "/v1/tasks", { body: { agent: "clerk", prompt: "hi" } });
  expect([(await task()).status, scene.named]).toEqual([409, ["workspaces 1"]]);
  // Changing the limits does not resume the workspace.
  await scene.gateway.call("PATCH", "/v1/workspace", { body: { limits: { requests_per_minute: 700 } } });
  await scene.restart();
  expect((await task()).status).toBe(409);
  await scene.gateway.call("POST", "/v1/workspace/resume");
  await scene.restart();
  expect((await task()).status).toBe(202);
});

test("limits that are changed in the file while the server runs are not adopted by a change to something else", async () => {
  // Bypasses SQLite, because the store would accept no change after another program's commit.
  ownConnection(scene.gateway.dataDir).exec(
    "UPDATE workspaces SET requests_per_minute = 999999, concurrent_tasks = 9999, enforcement = 'soft'",
  );
  const body = { limits: { enforcement: "enforced" }, budget: { credits_per_month: 5 } };
  expect((await scene.gateway.call("PATCH", "/v1/workspace", { body })).status).toBe(200);
  await scene.restart();
  expect((await scene.gateway.call("GET", "/v1/workspace")).body).toMatchObject({
    limits: { requests_per_minute: 600, concurrent_tasks: 60, enforcement: "enforced" },
    budget: { credits_per_month: 5 },
  });
});

test("a token whose agent's row is deleted is refused", async () => {
  await scene.gateway.agent("clerk");
  const { secret } = await issue({ agent: "clerk", scopes: ["agents:read"] });
  expect(await status(secret)).toBe(200);
  await scene.restart((file) => file.exec("DELETE FROM agents"));
  expect(await status(secret)).toBe(401);
});

test("an invented or changed schedule creates no task, and is named", async () => {
  await scene.gateway.agent("clerk");
  const body = { name: "nightly", agent: "clerk", prompt: "count", cron: "0 3 * * *" };
  const made = await scene.gateway.call("POST", "/v1/schedules", { body });
  expect(made.status).toBe(201);
  await scene.restart((file) => file.exec("UPDATE schedules SET prompt = 'pay', next_at = 1"));
  while (scene.named.length === 0) await Bun.sleep(5);
  expect(scene.named).toEqual([`schedules 1/${made.body.id}`]);
  expect((await scene.gateway.call("GET", "/v1/tasks")).body.data).toEqual([]);
});

test("a token of an agent whose row was deleted never acts as a later agent, whatever the id counters contain", async () => {
  await scene.gateway.agent("clerk");
  const { secret } = await issue({ agent: "clerk", scopes: ["agents:read"] });
  await scene.restart((file) => {
    file.exec("PRAGMA foreign_keys = OFF");
    const { next } = file.query<{ next: number }, []>("SELECT max(id) - 1 AS next FROM agents").get() ?? {};
    file.exec("DELETE FROM agents WHERE name = 'clerk'");
    file.query("UPDATE sqlite_sequence SET seq = ? WHERE name = 'agents'").run(next ?? 0);
  });
  await scene.gateway.agent("director");
  expect(await status(secret, "/v1/agents/director")).toBe(401);
});

test("a deleted workspace row does not pass its id, and so its tokens, to another workspace: the start is refused", async () => {
  await scene.gateway.workspace("other");
  expect(
    await scene.refusal((file) => {
      file.exec("PRAGMA foreign_keys = OFF");
      file.exec("DELETE FROM workspaces WHERE name = 'other'");
    }),
  ).toContain("a workspace was removed");
});
