/** `gatehouse reseal` shows what it would accept, and accepts nothing without consent. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { type Desk, openDesk } from "./support.ts";

setDefaultTimeout(60_000);

let desk: Desk;
const admin = createSecret(systemRandom);
beforeEach(() => {
  desk = openDesk({ env: { GATEHOUSE_ADMIN_TOKEN: admin } });
});
afterEach(() => desk.clear());

const open = () => new Database(join(desk.cwd, "gatehouse-data", "gatehouse.db"));

test("changed rows are listed with their contents, sealed only with --yes, and recorded", async () => {
  const server = await desk.serve();
  const body = { name: "narrow", scopes: ["agents:read"] };
  const issued = await desk.call(server, admin, "POST", "/v1/tokens", body);
  const { id, secret } = (await issued.json()) as { id: string; secret: string };
  await server.end("SIGTERM");
  {
    using file = open();
    file
      .query(`UPDATE tokens SET scopes = '["admin"]', name = 'a' || char(27) || '[2Jb' WHERE id = ?`)
      .run(id);
  }
  const asked = await desk.cli(["reseal"]);
  expect(asked.code).toBe(1);
  expect(asked.stdout).toContain(`tokens "${id}": id="${id}"`);
  expect(asked.stdout).toContain(String.raw`scopes="[\"admin\"]"`);
  expect(asked.stdout).not.toContain("\u001b");
  expect(asked.stderr).toContain("gatehouse reseal --yes");

  const refusing = await desk.serve();
  expect((await desk.call(refusing, secret, "GET", "/v1/agents")).status).toBe(401);
  await refusing.end("SIGTERM");

  expect(await desk.out(["reseal", "--yes"])).toContain(`tokens "${id}"`);
  const after = await desk.serve();
  expect((await desk.call(after, secret, "GET", "/v1/workspace")).status).toBe(200);
  const entries = await desk.call(after, admin, "GET", "/v1/ledger?action=store.seal&order=asc");
  const { data } = (await entries.json()) as { data: { detail: object }[] };
  expect(data.map(({ detail }) => detail)).toMatchObject([{ accepted: 1 }, { table: "tokens", row: id }]);
});

test("a ledger in which an entry was changed opens again only after a reseal, which says so", async () => {
  const server = await desk.serve();
  for (let n = 0; n < 300; n++) await desk.call(server, admin, "GET", "/v1/agents");
  await server.end("SIGTERM");
  {
    using file = open();
    const guard = file
      .query<{ sql: string }, []>("SELECT sql FROM sqlite_schema WHERE name = 'ledger_no_update'")
      .get();
    file.exec("DROP TRIGGER ledger_no_update");
    file.exec("UPDATE ledger SET bytes = replace(bytes, 'agent.list', 'agent.lost') WHERE seq = 9");
    file.exec(guard?.sql ?? "");
  }
  const refused = await desk.cli(["serve"]);
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining("cannot show which tokens were revoked"),
  ]);
  const asked = await desk.cli(["reseal"]);
  expect([asked.code, asked.stdout]).toEqual([1, expect.stringContaining("Found in the ledgers:")]);
  await desk.out(["reseal", "--yes"]);
  await desk.serve();
});

test("a row whose long value was changed beyond the part shown is shown as different", async () => {
  const server = await desk.serve();
  const body = {
    name: "scribe",
    owner: "tests",
    memory_scope: "support",
    instructions: `${"a".repeat(500)}end`,
  };
  await desk.call(server, admin, "POST", "/v1/agents", body);
  await server.end("SIGTERM");
  const shownAfter = async (value: string) => {
    {
      using file = open();
      file.query("UPDATE agents SET instructions = ?, owner = 'changed' WHERE name = 'scribe'").run(value);
    }
    const { stdout } = await desk.cli(["reseal"]);
    return /instructions=.*?SHA-256 [0-9a-f]{64}\)/.exec(stdout)?.[0];
  };
  const before = await shownAfter(body.instructions);
  expect(before).toContain("505 characters");
  expect(before).toContain(createHash("sha256").update(body.instructions).digest("hex"));
  expect(await shownAfter(body.instructions.replace("end", "END"))).not.toBe(before);
});
