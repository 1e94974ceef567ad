import { expect, test } from "bun:test";
import fc from "fast-check";
import { commandManual, settingsManual } from "../../scripts/releasing/manual.ts";
import { escaped, item, literal, paragraph } from "../../scripts/releasing/roff.ts";
import { verbsOf } from "../../src/cli/completion/verbs.ts";
import { createProgram } from "../../src/cli/program.ts";
import { settingsReference } from "../../src/config/reference.ts";

const EDITION = { version: "1.2.3", date: "2026-11-27" };
const REQUEST = /^\.(TH|SH|SS|PP|TP|B|nf|fi)\b/;

/** The page without what roff acts on: what a reader sees, but for the layout. */
function seen(roff: string): string {
  return roff
    .replaceAll("\\-", "-")
    .replaceAll("\\(aq", "'")
    .replaceAll("\\(ga", "`")
    .replaceAll("\\(dq", '"')
    .replaceAll("\\(ha", "^")
    .replaceAll("\\(ti", "~")
    .replaceAll("\\&", "")
    .replaceAll("\\e", "\\");
}

test("gatehouse(1) has every command, with its options and what its help says", async () => {
  const manual = await commandManual(EDITION);
  const page = seen(manual);
  const ends = verbsOf(await createProgram([])).filter(({ next }) => next.length === 0);
  for (const { words, options } of ends) {
    const [, part = ""] = page.split(`.SS "gatehouse ${words.join(" ")} `);
    expect(part).not.toBe("");
    for (const { flags } of options) expect(part).toContain(flags.at(-1) ?? "");
  }
  expect(page).toContain("Stop all servers first.");
  expect(page).toContain('.TH "GATEHOUSE" 1 "2026-11-27" "gatehouse 1.2.3"');
});

test("gatehouse.yaml(5) has every setting", () => {
  const page = seen(settingsManual(EDITION));
  for (const { key, help } of settingsReference()) {
    expect(page).toContain(`.B "${key}"`);
    expect(page).toContain(help);
  }
});

test("each line that roff would interpret is one of the few requests that are meant", async () => {
  for (const page of [await commandManual(EDITION), settingsManual(EDITION)]) {
    const meant = page.split("\n").filter((line) => /^[.']/.test(line));
    expect(meant.filter((line) => !REQUEST.test(line))).toEqual([]);
  }
});

test("no text is interpreted, and none is lost", () => {
  const text = fc.string({ unit: fc.constantFrom(...".'\\\"-`^~ab \n&e(") });
  fc.assert(
    fc.property(text, (given) => {
      const lines = escaped(given).split("\n");
      expect(lines.filter((line) => /^[.']/.test(line))).toEqual([]);
      expect(seen(escaped(given))).toBe(given);
      for (const part of [item(given.replaceAll("\n", " "), given), literal(given), paragraph(given)]) {
        const requests = part.split("\n").filter((line) => /^[.']/.test(line));
        expect(requests.filter((line) => !REQUEST.test(line))).toEqual([]);
      }
    }),
  );
});
