/** A node that cannot reach the database while it is given up. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { startGateway } from "../support/gateway.ts";
import { createDatabase, missingPostgres } from "../support/postgres/database.ts";
import { startProxy } from "../support/postgres/proxy.ts";
import { until } from "../support/until.ts";
import { dispatch, held, ledger, unsettled, yamlOf } from "../tasks/support.ts";

setDefaultTimeout(60_000);

describe.skipIf(missingPostgres !== undefined)("a node that is cut off", () => {
  const opened: (() => unknown)[] = [];

  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  test("cancels a task, which another node takes over and which ends as cancelled nevertheless", async () => {
    const upstream = startFakeModel();
    opened.push(() => upstream.close());
    const database = await createDatabase();
    opened.push(() => database.drop());
    const proxy = await startProxy(database.url);
    opened.push(() => proxy.close());
    const yaml = yamlOf(upstream.url, { tiers: { 1: ["a"] } });
    const admin = createSecret(systemRandom);
    const cut = await startGateway({ yaml, admin, database: { url: proxy.url } });
    opened.push(() => cut.stop());
    const other = await startGateway({ yaml, admin, database });
    opened.push(() => other.stop());
    await cut.agent("plain");
    const model = held();
    upstream.script("a", model.script);
    const id = await dispatch(cut, { agent: "plain" });
    await model.asked;

    proxy.swallow();
    const cancelled = await cut.call("POST", `/v1/tasks/${id}/cancel`);
    expect(cancelled).toMatchObject({ status: 200, body: { status: "cancelled" } });
    await database.query("DELETE FROM nodes WHERE id = (SELECT id FROM nodes ORDER BY since, id LIMIT 1)");
    // The other node asks the model again.
    await until(() => upstream.requests.length === 2);
    const read = async () => (await other.call("GET", `/v1/tasks/${id}`)).body;
    expect((await read()).status).toBe("running");

    proxy.resume();
    await until(async () => (await read()).status === "cancelled");
    await until(() => upstream.requests.every(({ aborted }) => aborted));
    const entries = await ledger(other);
    expect(unsettled(entries)).toEqual([]);
    const decisions = entries.filter(({ action }) => action === "task.cancel");
    expect(decisions.map(({ outcome }) => outcome)).toEqual(["succeeded"]);
  });
});
