/** Nodes that start at the same time, with a store that none has used before. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { loadConfig } from "../../src/config/load.ts";
import { type Gateway, openGateway } from "../../src/gateway.ts";
import { MASTER_KEY } from "../support/gateway.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";

setDefaultTimeout(120_000);

describe.skipIf(missingPostgres !== undefined)("nodes that start at the same time", () => {
  let database: TestDatabase;
  const directories: string[] = [];
  const gateways: Gateway[] = [];

  afterEach(async () => {
    for (const gateway of gateways.splice(0)) await gateway.stop();
    for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
    await database.drop();
  });

  /** @returns the secrets that were handed over */
  async function startAll(count: number, env: Record<string, string>): Promise<string[]> {
    database = await createDatabase();
    const handedOver: string[] = [];
    const starts = Array.from({ length: count }, async () => {
      const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-start-"));
      directories.push(dataDir);
      const flags = { data: dataDir, listen: "127.0.0.1:0" };
      const { config } = loadConfig({ flags, env, cwd: dataDir });
      const gateway = await openGateway(
        { ...config, store: { url: database.url }, masterKey: MASTER_KEY },
        { log: silentLog, rerunWork: true, handOverAdmin: (secret) => handedOver.push(secret) },
      );
      gateways.push(gateway);
      await gateway.start();
    });
    await Promise.all(starts);
    return handedOver;
  }

  const count = async (table: string): Promise<number> =>
    (await database.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${table}`))[0]?.count ?? 0;

  test("create one workspace and one token with the secret that they share, and hand none over", async () => {
    const secret = createSecret(systemRandom);
    expect(await startAll(4, { GATEHOUSE_ADMIN_TOKEN: secret })).toEqual([]);
    expect([await count("workspaces"), await count("tokens")]).toEqual([1, 1]);
    for (const gateway of gateways) {
      const headers = { authorization: `Bearer ${secret}` };
      const answer = await gateway.handle(new Request("http://localhost/v1/agents", { headers }));
      expect(answer.status).toBe(200);
    }
  });

  test("create one token and hand one secret over if none is configured", async () => {
    const handedOver = await startAll(3, {});
    expect(handedOver).toHaveLength(1);
    expect(await count("tokens")).toBe(1);
    const links = await Promise.all(gateways.map((gateway) => gateway.consoleLink()));
    expect(links.filter((link) => link !== null)).toHaveLength(1);
  });
});
