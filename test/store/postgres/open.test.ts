/** Opening a database: who upgrades it, and what a refused start says. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createServer, type Server } from "node:net";
import { connect } from "../../../src/store/postgres/driver.ts";
import { TIMEOUTS } from "../../../src/store/postgres/limits.ts";
import { type Migration, migrate } from "../../../src/store/postgres/migrate.ts";
import { MIGRATIONS } from "../../../src/store/postgres/migrations/index.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { WholeDatabase } from "../../../src/store/postgres/whole-database.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../../support/postgres/database.ts";
import { outcomes } from "../support.ts";

describe("a URL is refused", () => {
  test.each(["", "here", "https://127.0.0.1/gatehouse", "postgres://127.0.0.1", "postgres://127.0.0.1/"])(
    "if it is %p",
    async (url) => {
      expect(await outcomes([openPostgres({ url })])).toEqual([
        "OperatorError: the store is not a URL of PostgreSQL",
      ]);
    },
  );

  test("if nothing answers there, without showing the password", async () => {
    const url = "postgres://user:secret@127.0.0.1:1/gatehouse";
    const [refused] = await outcomes([openPostgres({ url })]);
    expect(refused).toContain("the database gatehouse on 127.0.0.1:1 cannot be used");
    expect(refused).not.toContain("secret");
  });

  test("if something accepts the connection and never answers", async () => {
    const server: Server = createServer(() => {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" ? address?.port : 0;
    const opening = openPostgres({
      url: `postgres://user@127.0.0.1:${port}/gatehouse`,
      timeouts: { connectMs: 50 },
    });
    expect((await outcomes([opening]))[0]).toContain("cannot be used");
    server.close();
  });
});

describe.skipIf(missingPostgres !== undefined)("a database", () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createDatabase();
  });

  afterAll(() => database.drop());

  const versions = async () =>
    (await database.query<{ version: string }>("SELECT version FROM gatehouse_schema ORDER BY version")).map(
      ({ version }) => Number(version),
    );

  async function upgrade(migrations: readonly Migration[]): Promise<void> {
    const connection = await connect(database.url, TIMEOUTS);
    try {
      await migrate(connection, migrations);
    } finally {
      await connection.close();
    }
  }

  test("is refused if the password is wrong, or it does not exist", async () => {
    const wrong = new URL(database.url);
    wrong.pathname = "/nowhere";
    expect((await outcomes([openPostgres({ url: wrong.href })]))[0]).toContain(
      'database "nowhere" does not exist',
    );
    wrong.username = "nobody_of_that_name";
    expect((await outcomes([openPostgres({ url: wrong.href })]))[0]).toContain("nobody_of_that_name");
  });

  test("is refused if it has somebody else's tables, which stay as they are", async () => {
    await database.query("CREATE TABLE invoices (id int)");
    expect(await outcomes([openPostgres({ url: database.url })])).toEqual([
      "OperatorError: the database has tables, and is not a Gatehouse database",
    ]);
    expect(await database.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).toEqual([
      { tablename: "invoices" },
    ]);
    await database.query("DROP TABLE invoices");
  });

  test("is left as it was if an upgrade fails", async () => {
    const broken = [...MIGRATIONS, { name: "broken", sql: "CREATE TABLE workspaces ()" }];
    expect((await outcomes([upgrade(broken)]))[0]).toContain("already exists");
    expect(await database.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")).toEqual([]);
  });

  test("is upgraded once, however many nodes start at the same time", async () => {
    const nodes = await Promise.all(Array.from({ length: 5 }, () => openPostgres({ url: database.url })));
    expect(await versions()).toEqual(MIGRATIONS.map((_, index) => index + 1));
    await Promise.all(nodes.map((node) => node.close()));
  });

  const ADDITIVE: Migration = {
    name: "next",
    sql: "CREATE TABLE added (id BIGINT); SELECT 1",
    isAdditive: true,
  };

  test("is upgraded by what it lacks", async () => {
    const next = [...MIGRATIONS, ADDITIVE];
    await upgrade(next);
    expect(await versions()).toHaveLength(MIGRATIONS.length + 1);
    await upgrade(next);
    expect(await versions()).toHaveLength(MIGRATIONS.length + 1);
  });

  test("of a newer version that only adds something can be opened, and stays as it is", async () => {
    await (await openPostgres({ url: database.url })).close();
    expect(await versions()).toHaveLength(MIGRATIONS.length + 1);
  });

  test("of a newer version is not copied: the content of all tables has to be known", async () => {
    for (const open of [WholeDatabase.openSource, WholeDatabase.openTarget]) {
      await expect(open(database.url)).rejects.toThrow(
        `has the schema ${MIGRATIONS.length + 1}, and this program`,
      );
    }
  });

  test("that something reads for long is not upgraded, and its servers are not held up for long", async () => {
    const server = await openPostgres({ url: database.url });
    const reader = await connect(database.superuserUrl, TIMEOUTS);
    // As a backup.
    await reader.send("BEGIN");
    await reader.send("SELECT 1 FROM ledger LIMIT 1");
    const changing: Migration = {
      name: "changing",
      sql: "ALTER TABLE ledger ADD COLUMN extra BIGINT",
      isAdditive: true,
    };
    const upgrading = upgrade([...MIGRATIONS, ADDITIVE, changing]);
    for (let count = 0; count < 3; count++)
      await server.tx(1, (tx) => tx.all("SELECT 1 FROM ledger LIMIT 1"));
    expect(await versions()).toHaveLength(MIGRATIONS.length + 1);
    await reader.send("ROLLBACK");
    await upgrading;
    expect(await versions()).toHaveLength(MIGRATIONS.length + 2);
    await database.query("DELETE FROM gatehouse_schema WHERE name = 'changing'");
    await database.query("ALTER TABLE ledger DROP COLUMN extra");
    await reader.close();
    await server.close();
  });

  test("of a newer version that changes something is refused, also after another addition", async () => {
    const changing: Migration = { name: "changing", sql: "DROP TABLE added" };
    for (const more of [[changing], [changing, { ...ADDITIVE, name: "later" }]]) {
      await upgrade([...MIGRATIONS, ADDITIVE, ...more]);
      const [refused] = await outcomes([openPostgres({ url: database.url })]);
      expect(refused).toContain("was upgraded by a newer Gatehouse");
    }
    await upgrade([...MIGRATIONS, ADDITIVE, changing]);
  });
});
