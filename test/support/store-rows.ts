/** The rows of a running gateway's store, whichever engine it has, for tests that look behind its doors or change them. */
import pg from "pg";
import type { TestGateway } from "./gateway.ts";
import { ownConnection } from "./own-connection.ts";

/** Runs one statement in SQL that both engines take, with parameters `$1`, and returns its rows. */
export async function storeRows<Row extends object>(
  { dataDir, databaseUrl }: Pick<TestGateway, "dataDir" | "databaseUrl">,
  sql: string,
  params: readonly (string | number)[] = [],
): Promise<Row[]> {
  if (databaseUrl === null) {
    return ownConnection(dataDir)
      .query<Row, (string | number)[]>(sql.replace(/\$(\d)/g, "?$1"))
      .all(...params);
  }
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query(sql, [...params]);
    return rows as Row[];
  } finally {
    await client.end();
  }
}
