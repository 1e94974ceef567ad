/** The rooms above the engine write SQL that SQLite and PostgreSQL take, and that means the same in both. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { containsSql, inListSql, listsOf } from "../../src/store/common-sql.ts";
import { openBench } from "./support.ts";

const SRC = join(import.meta.dir, "../../src");

/**
 * Code of the SQLite engine, or for its file: verification, and the vault's index and vectors. And code for nodes that
 * share a store, which is PostgreSQL.
 */
const OF_ONE_ENGINE =
  /^(store\/(sqlite|postgres)|ledger\/verify|console)\/|^vault\/(index-(sqlite|postgres)|rows\/(vec0|vector-table|sqlite-keys))\.ts$|\/shared(-[^/]+\.ts$|\/)/;
const STATEMENT = /\b(SELECT|INSERT|UPDATE|DELETE|WHERE|ON CONFLICT)\b/;

const REFUSED: readonly (readonly [construct: string, found: RegExp, instead: string])[] = [
  ["INDEXED BY", /\bINDEXED\b/, "a condition that the planner serves from the index"],
  ["JSON functions", /\bjson_\w+\(|->>|->'/, "`parsedEntry`, or `inListSql`"],
  ["MAX or MIN of several values", /(?<!Math\.)\b(?:MAX|MIN|max|min)\((?!\.\.\.)[^()]*,/, "CASE"],
  ["LIKE, GLOB and REGEXP", /\b(I?LIKE|GLOB|REGEXP) /, "`containsSql`, or a range"],
  ["instr", /\b(instr|INSTR)\(/, "`containsSql`"],
  ["IFNULL and IIF", /\b(IFNULL|IIF|ifnull|iif)\(/, "COALESCE and CASE"],
  ["rowid", /\browid\b|last_insert_rowid/, "RETURNING"],
  ["REPLACE and OR IGNORE", /\bREPLACE INTO\b|\bINSERT OR\b/, "ON CONFLICT"],
  ["SQLite's tables", /\bsqlite_\w+/, "nothing"],
  ["BLOB", /\bAS BLOB\b/, "`Buffer.from`"],
  ["a parameter without a type", /\$\d+ IS (NOT )?NULL/, "two statements"],
  ["LIMIT without a limit", /LIMIT -1/, "no LIMIT"],
  [
    "reserved names",
    /\bAS (some|any|all|user|end|order|limit|offset|table|column|primary)\b/,
    "another name",
  ],
  [
    "length of a text in characters",
    /(?<![\w.])length\(\w+(\.\w+)?\)(?=[^`"']*\b(AS|FROM)\b)/,
    "octet_length",
  ],
];

async function statements(): Promise<[file: string, text: string][]> {
  const found: [string, string][] = [];
  for await (const file of new Bun.Glob("**/*.ts").scan(SRC)) {
    if (OF_ONE_ENGINE.test(file)) continue;
    const code = (await Bun.file(join(SRC, file)).text()).replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
    for (const [text] of code.matchAll(/`[^`]*`|"[^"\n]*"|'[^'\n]*'/g)) {
      if (STATEMENT.test(text)) found.push([file, text]);
    }
  }
  return found;
}

test("the rooms above the engine use no construct that only one engine has", async () => {
  const texts = await statements();
  expect(texts.length).toBeGreaterThan(200);
  const found = texts.flatMap(([file, text]) =>
    REFUSED.filter(([, pattern]) => pattern.test(text)).map(([construct]) => `${file}: ${construct}`),
  );
  expect([...new Set(found)]).toEqual([]);
});

test("`containsSql` minds case, and reads no character as a pattern", () => {
  const { writer, close } = openBench();
  const contains = (text: string, part: string) =>
    writer.all(`SELECT 1 WHERE ${containsSql("$1", "$2")}`, [text, part]).length === 1;
  expect(contains('["Admin"]', '"admin"')).toBe(false);
  expect(contains("abc", "a%")).toBe(false);
  expect(contains("abc", "a_c")).toBe(false);
  expect(contains('["read","admin"]', '"admin"')).toBe(true);
  expect(contains("admin", "admin")).toBe(true);
  close();
});

test.each([0, 1, 63, 64, 65, 200])("`listsOf` and `inListSql` find %d values", (count) => {
  const { writer, close } = openBench();
  const wanted = Array.from({ length: count }, (_, index) => index * 2 + 1);
  for (let key = 0; key < 2 * count + 10; key++) writer.run("INSERT INTO t VALUES ($1, '')", [key]);
  const found = listsOf(wanted).flatMap((list) =>
    writer.all<{ k: number }>(`SELECT k FROM t WHERE k < $1 AND ${inListSql("k", 2)} ORDER BY k`, [
      1_000,
      ...list,
    ]),
  );
  expect(found.map(({ k }) => k)).toEqual(wanted);
  close();
});
