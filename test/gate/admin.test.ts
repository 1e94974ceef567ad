import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSecret, hashSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { loadConfig } from "../../src/config/load.ts";
import { openGateway } from "../../src/gateway.ts";

const directory = mkdtempSync(join(tmpdir(), "gatehouse-admin-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Opens a gateway on the directory, lets `work` call it, and returns the secrets that it handed over. */
async function open(
  name: string,
  configured: string | undefined,
  work: (call: Caller) => Promise<void> = async () => {},
) {
  const env = configured === undefined ? {} : { GATEHOUSE_ADMIN_TOKEN: configured };
  const { config } = loadConfig({ flags: { data: join(directory, name) }, env, cwd: directory });
  const handed: string[] = [];
  const gateway = await openGateway(config, {
    log: silentLog,
    handOverAdmin: (secret) => handed.push(secret),
  });
  await work(async (secret, method, path) => {
    const headers = { authorization: `Bearer ${secret}` };
    const response = await gateway.handle(new Request(`http://gatehouse${path}`, { method, headers }));
    return { status: response.status, body: response.status === 204 ? null : await response.json() };
  });
  await gateway.stop();
  return handed;
}

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
type Caller = (secret: string, method: string, path: string) => Promise<{ status: number; body: any }>;

test("the first start hands over one working secret, and later starts none", async () => {
  const [secret = ""] = await open("first", undefined);
  const again = await open("first", undefined, async (call) => {
    expect((await call(secret, "GET", "/v1/agents")).status).toBe(200);
  });
  expect(again).toEqual([]);
});

test("a configured secret that was rotated never works again, however often it is configured", async () => {
  const secret = createSecret(systemRandom);
  await open("rotated", secret, async (call) => {
    const { body } = await call(secret, "GET", "/v1/tokens");
    const path = `/v1/tokens/${body.data[0].id}/rotate`;
    const second = (await call(secret, "POST", path)).body.secret;
    expect((await call(second, "POST", path)).status).toBe(200);
    expect((await call(secret, "GET", "/v1/agents")).status).toBe(401);
  });
  const handed = await open("rotated", secret, async (call) => {
    expect((await call(secret, "GET", "/v1/agents")).status).toBe(401);
  });
  expect(handed).toEqual([]);
});

test("a secret that was handed over may be configured afterwards", async () => {
  const [secret = ""] = await open("both", undefined);
  const handed = await open("both", secret, async (call) => {
    const { body } = await call(secret, "GET", "/v1/tokens");
    expect(body.data).toHaveLength(1);
  });
  expect(handed).toEqual([]);
});

test.each([
  ["deleted", "DELETE FROM tokens"],
  ["given another secret", "UPDATE tokens SET secret_hash = randomblob(32), previous_hash = NULL"],
])("a configured secret that was revoked never comes back, though its row is %s", async (name, edit) => {
  const secret = createSecret(systemRandom);
  await open(name, secret, async (call) => {
    const { body } = await call(secret, "GET", "/v1/tokens");
    expect((await call(secret, "DELETE", `/v1/tokens/${body.data[0].id}`)).status).toBe(204);
  });
  using file = new Database(join(directory, name, "gatehouse.db"));
  file.exec(`PRAGMA foreign_keys = OFF; ${edit}; DELETE FROM meta WHERE key LIKE 'admin:%'`);
  await open(name, secret, async (call) => {
    expect((await call(secret, "GET", "/v1/agents")).status).toBe(401);
  });
});

test("nor does one that an earlier version stored outside the ledger, once a start has seen it", async () => {
  const secret = createSecret(systemRandom);
  await open("former", undefined);
  const edit = (sql: string) => {
    using file = new Database(join(directory, "former", "gatehouse.db"));
    file.query(sql).run(`admin:${hashSecret(secret).toString("hex")}`);
  };
  edit("INSERT INTO meta (key, value) VALUES (?, 'tok_former')");
  await open("former", secret);
  edit("DELETE FROM meta WHERE key = ?");
  await open("former", secret, async (call) => {
    expect((await call(secret, "GET", "/v1/agents")).status).toBe(401);
  });
});

test.each([
  ["deleted", "DELETE FROM tokens"],
  ["given other scopes", `UPDATE tokens SET scopes = '["agents:read"]'`],
])("the first start's secret is the only one, though its row is %s", async (name, edit) => {
  const own = `generated ${name}`;
  expect(await open(own, undefined)).toHaveLength(1);
  {
    using file = new Database(join(directory, own, "gatehouse.db"));
    file.exec(`PRAGMA foreign_keys = OFF; ${edit}`);
  }
  expect(await open(own, undefined)).toEqual([]);
});
