/**
 * Somebody who can write the database's file hides rows from an index. SQLite then finds them only without that
 * index.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { startFakeModel } from "../../support/fake-model.ts";
import { dispatch, until, yamlOf } from "../../tasks/support.ts";
import { openScene, putBack, rowOf, type Scene, withIndexAs } from "./support.ts";

setDefaultTimeout(60_000);

let scene: Scene;
const model = startFakeModel();
beforeEach(async () => {
  model.script("a", () => ({ toolCalls: [{ name: "vault__search", arguments: { query: "x" } }] }));
  scene = await openScene({ yaml: yamlOf(model.url, { tiers: { 1: ["a"] }, prices: { a: [0, 0] } }) });
});
afterEach(() => scene.remove());

test("a revoked token's row that is restored, and is in no index, lets nobody in, and is named", async () => {
  const issued = await scene.gateway.call("POST", "/v1/tokens", {
    body: { name: "given", scopes: ["agents:read"] },
  });
  const { id, secret } = issued.body;
  let before = {};
  await scene.restart((file) => {
    before = rowOf(file, "tokens", id);
  });
  await scene.gateway.call("DELETE", `/v1/tokens/${id}`);
  await scene.edit((file) => file.query("DELETE FROM tokens WHERE id = ?").run(id));
  withIndexAs(scene.dataDir, ["tokens (workspace_id, id)", "tokens (last_used_at, id)"], (file) =>
    putBack(file, "tokens", before),
  );
  expect(await scene.findings()).toContainEqual(expect.stringContaining("tokens_by_workspace"));
  await scene.restart((file) => {
    const found =
      "SELECT COUNT(*) AS count FROM tokens INDEXED BY tokens_by_workspace WHERE workspace_id = 1 AND id = ?";
    expect(file.query(found).get(id)).toEqual({ count: 0 });
  });
  expect((await scene.gateway.call("GET", "/v1/agents", { token: secret })).status).toBe(401);
  expect(scene.named).toContain(`tokens ${id}`);
});

test("an open task that is in no index is found: the start is refused with a clear message, and `ledger verify` names it", async () => {
  await scene.gateway.agent("careful", { approvals: ["*"] });
  const id = await dispatch(scene.gateway, { agent: "careful", tools: ["vault.search"] });
  const statusOf = async () => (await scene.gateway.call("GET", `/v1/tasks/${id}`)).body.status;
  await until(async () => (await statusOf()) === "awaiting_approval");
  let row = {};
  await scene.edit((file) => {
    row = rowOf(file, "tasks", id);
    file.exec("PRAGMA foreign_keys = OFF");
    file.query("DELETE FROM tasks WHERE id = ?").run(id);
  });
  withIndexAs(scene.dataDir, ["finished_at IS NULL", "finished_at IS 1e99"], (file) => {
    file.exec("PRAGMA foreign_keys = OFF");
    putBack(file, "tasks", row);
  });
  expect(await scene.findings()).toContainEqual(expect.stringContaining("database_damaged: The table tasks"));
  expect(await scene.refusal()).toContain("the index tasks_open of the database has 0 tasks instead of 1");
});
