/** Each promise of SECURITY.md names the test that proves it. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..");
const page = readFileSync(join(root, "SECURITY.md"), "utf8");
const sections = page.split(/^## /m).filter((section) => section.startsWith("Protected against "));
const promises = sections.flatMap((section) => section.split("\n").filter((line) => line.startsWith("- ")));
const REFERENCE = /^- (.+) — (test\/[\w./-]+\.test\.ts), "(.+)"$/;

test("there are promises against each of those whom the page names", () => {
  const [, table = ""] = page.split("## From whom");
  const rows = [...(table.split("## ")[0] ?? "").matchAll(/^\| (an? [\w ]+?) +\|/gm)].map(([, who]) => who);
  expect(sections.map((section) => section.match(/^Protected against (.+)$/m)?.[1])).toEqual(rows);
  expect(promises.length).toBeGreaterThan(40);
});

describe("a promise names a test that is there", () => {
  test.each(promises)("%s", (line) => {
    const [, , file = "", name = ""] = line.match(REFERENCE) ?? [];
    expect(file).not.toBe("");
    expect(existsSync(join(root, file))).toBe(true);
    const source = readFileSync(join(root, file), "utf8");
    expect(source).toMatch(/\b(?:test|describe)\b/);
    const quoted = [`"${name}"`, JSON.stringify(name), `\`${name}\``, `'${name}'`];
    expect(quoted.filter((text) => source.includes(text))).not.toEqual([]);
  });
});
