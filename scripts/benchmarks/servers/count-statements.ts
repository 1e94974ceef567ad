/**
 * Loaded into a server before its own code. Counts the SQL statements that each thread executes through bun:sqlite,
 * which offers no hook for it. Workers get it too.
 */
import { Database, type Statement } from "bun:sqlite";
import { COUNTERS } from "./counters.ts";

const CONTROL = /^\s*(BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|PRAGMA)\b/i;
const EXECUTING = ["all", "get", "iterate", "raw", "run", "values"] as const;

const counters = new Int32Array(Bun.mmap(process.env[COUNTERS.variable] ?? "", { shared: true }).buffer);
const count = (sql: string) =>
  Atomics.add(counters, CONTROL.test(sql) ? COUNTERS.control : COUNTERS.statements, 1);

type Callable = (...values: unknown[]) => unknown;

/** Replaces a method by one that counts first. */
function counting(object: object, name: string, sqlOf: (values: readonly unknown[]) => string): void {
  const original: unknown = Reflect.get(object, name);
  if (typeof original !== "function") return;
  const counted: Callable = function (this: unknown, ...values) {
    count(sqlOf(values));
    return original.apply(this, values);
  };
  Reflect.defineProperty(object, name, { value: counted, configurable: true, writable: true });
}

// `exec` and `run` of a database execute at once. Those of bun:sqlite do not prepare through `prepare`.
for (const name of ["exec", "run"]) counting(Database.prototype, name, ([sql]) => String(sql));

const prepare = Database.prototype.prepare;
Database.prototype.prepare = function (this: Database, sql: string, ...rest: never[]): Statement {
  const statement = prepare.call(this, sql, ...rest);
  for (const name of EXECUTING) counting(statement, name, () => sql);
  return statement;
} as typeof prepare;

const PlainWorker = globalThis.Worker;
globalThis.Worker = class extends PlainWorker {
  constructor(url: string | URL, options: WorkerOptions = {}) {
    super(url, { ...options, preload: [import.meta.path] });
  }
} as typeof Worker;
