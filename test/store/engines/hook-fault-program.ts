/** Opens the store that it is given, lets a hook throw, and prints what happens. */
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";

const [place = ""] = process.argv.slice(2);
const told: string[] = [];
const db = place.startsWith("postgres") ? await openPostgres({ url: place }) : openSqlite(place);
await db.run("CREATE TABLE t (k BIGINT PRIMARY KEY)");
process.on("uncaughtException", (error) => told.push(`uncaught: ${error.message}`));
const faulty = db.tx(1, async (tx) => {
  tx.onCommit(() => {
    throw new Error("first");
  });
  tx.onCommit(() => told.push("second"));
  tx.write("INSERT INTO t (k) VALUES (1)");
  return "committed";
});
const bystander = db.tx(1, async (tx) => {
  tx.onCommit(() => told.push("bystander"));
  tx.write("INSERT INTO t (k) VALUES (2)");
  return "committed";
});
const undone = db.tx(1, async (tx) => {
  tx.onRollback(() => told.push("undone"));
  tx.onRollback(() => {
    throw new Error("undoing");
  });
  throw new Error("refused");
});
for (const each of await Promise.allSettled([faulty, bystander, undone]))
  told.push(each.status === "fulfilled" ? each.value : String(each.reason));
while (told.filter((each) => each.startsWith("uncaught")).length < 2) await Bun.sleep(5);
console.log(JSON.stringify(told));
await db.close();
process.exit(0);
