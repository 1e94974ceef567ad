/**
 * The program is built with bytecode. Bun has ended programs early, with exit code 0, when they imported a module on
 * demand that awaits at its top level (oven-sh/bun, pull request 37770).
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { parseSync } from "oxc-parser";

const SOURCES = join(import.meta.dir, "..", "..", "src");
const ENTRIES = [
  "main.ts",
  "vault/worker.ts",
  "store/sqlite/sync-worker.ts",
  "connectors/openapi/reading/worker.ts",
];
/** What is inside of these runs only when it is called. */
const CALLED = /Function|MethodDefinition|PropertyDefinition/;

test("of all that the program contains, only its entry awaits at its top level", async () => {
  const { outputs } = await Bun.build({
    entrypoints: ENTRIES.map((entry) => join(SOURCES, entry)),
    root: SOURCES,
    target: "bun",
    splitting: true,
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const awaiting: string[] = [];
  for (const output of outputs) {
    if (!output.path.endsWith(".js")) continue;
    const { program, errors } = parseSync(output.path, await output.text());
    expect(errors).toEqual([]);
    if (awaits(program.body)) awaiting.push(output.path);
  }
  expect(outputs.length).toBeGreaterThan(50);
  expect(awaiting).toEqual(["./main.js"]);
}, 60_000);

function awaits(node: unknown): boolean {
  if (Array.isArray(node)) return node.some(awaits);
  if (typeof node !== "object" || node === null) return false;
  const type = String(Reflect.get(node, "type"));
  if (CALLED.test(type)) return false;
  return (
    type === "AwaitExpression" ||
    (type === "ForOfStatement" && Reflect.get(node, "await") === true) ||
    Object.values(node).some(awaits)
  );
}
