/** A node that receives no messages of the others, although it reaches the database. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";
import { startProxy, type TestProxy } from "../support/postgres/proxy.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(60_000);

describe.skipIf(missingPostgres !== undefined)("a node that hears nothing", () => {
  let database: TestDatabase;
  let proxy: TestProxy;
  let other: TestGateway;
  let deaf: TestGateway;

  beforeAll(async () => {
    database = await createDatabase();
    proxy = await startProxy(database.url);
    const admin = createSecret(systemRandom);
    other = await startGateway({ database, admin });
    deaf = await startGateway({ database: { url: database.url, directUrl: proxy.url }, admin });
  });

  afterAll(async () => {
    proxy.resume();
    await deaf.stop();
    await other.stop();
    await proxy.close();
    await database.drop();
  });

  const issue = async () =>
    (await other.call("POST", "/v1/tokens", { body: { name: "t", scopes: ["admin"] } })).body as {
      readonly id: string;
      readonly secret: string;
    };
  const answer = async (token: string, path = "/v1/agents") => {
    const { status, body } = await deaf.call("GET", path, { token });
    return [status, body?.code ?? body?.status];
  };

  test("serves nothing that was revoked or stopped, refuses everything soon, and then goes on", async () => {
    const [revoked, kept] = [await issue(), await issue()];
    const tenant = await other.workspace("tenant");
    await other.agent("halted");
    for (const { secret } of [revoked, kept]) expect((await answer(secret))[0]).toBe(200);
    expect(await answer(kept.secret, "/v1/agents/halted")).toEqual([200, "active"]);
    expect(await answer(tenant, "/v1/workspace")).toEqual([200, "active"]);

    proxy.swallow();
    await other.call("DELETE", `/v1/tokens/${revoked.id}`);
    await other.call("POST", "/v1/agents/halted/stop");
    await other.call("POST", "/v1/workspace/stop", { token: tenant });
    // Requests that begin a second after those answers.
    await Bun.sleep(1_000);
    expect(await answer(revoked.secret)).toEqual([401, "invalid_token"]);
    expect(await answer(kept.secret, "/v1/agents/halted")).toEqual([200, "stopped"]);
    expect(await answer(tenant, "/v1/workspace")).toEqual([200, "stopped"]);

    await until(async () => (await answer(kept.secret))[0] === 503);
    expect(await answer(kept.secret)).toEqual([503, "ledger_unavailable"]);
    expect((await deaf.call("GET", "/readyz", { token: null })).status).toBe(503);
    // It may still stop something.
    expect((await deaf.call("POST", "/v1/workspace/stop")).status).toBe(200);
    expect((await other.call("POST", "/v1/workspace/resume")).status).toBe(200);

    proxy.cut();
    proxy.resume();
    await until(async () => (await answer(kept.secret))[0] === 200);
    expect((await answer(revoked.secret))[0]).toBe(401);
    await until(async () => (await deaf.call("GET", "/readyz", { token: null })).status === 200);
    expect((await deaf.call("GET", "/v1/workspace")).body.status).toBe("active");
  });
});
