/** The module that counts the SQL statements of a server for `scripts/bench run`. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COUNTERS, readCounters } from "../../scripts/benchmarks/servers/counters.ts";

const PRELOADED = join(
  import.meta.dir,
  "..",
  "..",
  "scripts",
  "benchmarks",
  "servers",
  "count-statements.ts",
);
const folder = mkdtempSync(join(tmpdir(), "gatehouse-count-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("each execution counts once, in every thread; transaction control counts separately", async () => {
  const file = join(folder, "counters");
  writeFileSync(file, new Uint8Array(COUNTERS.bytes));
  const program = join(folder, "program.ts");
  const thread = join(folder, "thread.ts");
  writeFileSync(
    program,
    `import { Database } from "bun:sqlite";
    const database = new Database(":memory:");
    database.exec("PRAGMA cache_size = 10");
    database.exec("CREATE TABLE t (a)");
    const insert = database.prepare("INSERT INTO t VALUES (?1)");
    database.run("BEGIN");
    for (const value of [1, 2, 3]) insert.run(value);
    database.run("COMMIT");
    if (database.prepare("SELECT a FROM t").all().length !== 3) throw new Error("rows are missing");
    new Worker(${JSON.stringify(thread)});`,
  );
  writeFileSync(
    thread,
    `import { Database } from "bun:sqlite";
    new Database(":memory:").prepare("SELECT 1").get();`,
  );
  const child = Bun.spawn([process.execPath, "--preload", PRELOADED, program], {
    env: { [COUNTERS.variable]: file },
    stdio: ["ignore", "inherit", "inherit"],
  });
  expect(await child.exited).toBe(0);
  expect(readCounters(file)).toEqual({ statements: 6, control: 3 });
});
