/** Each promise of SECURITY.md names the test that proves it. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..");
const page = readFileSync(join(root, "SECURITY.md"), "utf8");
const sections = page.split(/^## /m).filter((section) => section.startsWith("Protected against "));
const promises = sections.flatMap((section) => section.split("\n").filter((line) => line.startsWith("- ")));
const REFERENCE = /^- (.+) — (test\/[\w./-]+\.test\.ts), "(.+)"$/;

test("there are promises against each party that the page names", () => {
  const [, table = ""] = page.split("## From whom");
  const rows = [...(table.split("## ")[0] ?? "").matchAll(/^\| (an? [\w ]+?) +\|/gm)].map(([, who]) => who);
  expect(sections.map((section) => section.match(/^Protected against (.+)$/m)?.[1])).toEqual(rows);
  expect(promises.length).toBeGreaterThan(40);
});

describe("a promise names an existing test", () => {
  test.each(promises)("%s", (line) => {
    const [, , file = "", name = ""] = line.match(REFERENCE) ?? [];
    expect(file).not.toBe("");
    expect(existsSync(join(root, file))).toBe(true);
    const source = readFileSync(join(root, file), "utf8");
    expect(namesTest(source, name)).toBe(true);
  });
});

/** A line with a test's title: a call of `test` or `describe`, the end of an `.each`, or a table's row. */
const TITLE_LINE = /^(?!.*(?:;|\/\/|\/\*))\s*(?:(?:test|describe)\b.*\(|[\])].*\)\(|[\])]+\(|[[{(]+\s*)?$/;
const NEVER_RUN = /\b(?:test|describe)\.(?:skip|todo)\b/;

/** Whether a test file has a test or a table's row of this name, and skips nothing unconditionally. */
function namesTest(source: string, name: string): boolean {
  if (NEVER_RUN.test(source) || !/\b(?:test|describe)\b/.test(source)) return false;
  const quoted = [`"${name}"`, JSON.stringify(name), `\`${name}\``, `'${name}'`];
  return source.split("\n").some((line) =>
    quoted.some((text) => {
      const at = line.indexOf(text);
      return at >= 0 && TITLE_LINE.test(line.slice(0, at));
    }),
  );
}

describe("a name does not count as a test", () => {
  test.each([
    ["in a comment", '// test("a promise", () => {});\ntest("another", () => {});'],
    ["at the end of a line of code", 'test("another", () => {}); // test("a promise")'],
    ["in a comment of several lines", '/*\n * "a promise"\n */\ntest("another", () => {});'],
    ["in an assertion", 'test("another", () => {\n  expect("a promise").toBe("");\n});'],
    ["in a skipped test", `test.${"skip"}("a promise", () => {});`],
    ["in a todo test", `test.${"todo"}("a promise");`],
    ["in a skipped group", `describe.${"skip"}("group", () => {\n  test("a promise", () => {});\n});`],
  ])("%s", (_, source) => {
    expect(namesTest(source, "a promise")).toBe(false);
  });
});

test("a name counts as a test in a call, behind a condition, after a table, or in a table's row", () => {
  for (const source of [
    'test("a promise", () => {});',
    '  test.skipIf(!isRoot)("a promise", () => {});',
    'test.each([1])(\n  "a promise",\n  () => {},\n);',
    'test.each([\n  ["a promise", 1],\n])("%s", () => {});',
    'test.each([\n  1,\n])("a promise", () => {});',
  ]) {
    expect(namesTest(source, "a promise")).toBe(true);
  }
});
