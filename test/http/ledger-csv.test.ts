import { expect, test } from "bun:test";
import { parse } from "csv-parse/sync";
import { stringify } from "csv-stringify/sync";
import fc from "fast-check";
import { CSV_COLUMNS, csvHeader, csvRows } from "../../src/http/ledger/csv.ts";
import { type EntryView, viewEntry } from "../../src/http/ledger/entry.ts";

/** Characters that a spreadsheet treats as the beginning of a formula. */
const FORMULA = ["=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"];
const PLAIN = ["a", "'", '"', ",", ";", "\n", "\r\n", " ", "0", "é", "\u{1F600}", "\uFEFF"];
const hostile = fc
  .array(fc.oneof(fc.constantFrom(...FORMULA, ...PLAIN), fc.string({ unit: "binary" })), {
    minLength: 1,
    maxLength: 6,
  })
  .map((pieces) => pieces.join(""));
const value = fc.oneof(hostile, fc.integer());
const fields = (names: readonly string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] });

const OVERSIGHT = CSV_COLUMNS.flatMap((column) =>
  column.startsWith("oversight_") ? [column.slice("oversight_".length)] : [],
);
const DIRECT = CSV_COLUMNS.filter(
  (column) => !column.startsWith("oversight_") && column !== "detail" && column !== "leaf",
);
const entry = fc
  .tuple(
    fields(DIRECT),
    fc.option(fields(OVERSIGHT), { nil: undefined }),
    fc.option(fields(["a", "b"]), { nil: undefined }),
  )
  .map(([direct, oversight, detail]) =>
    viewEntry({ seq: 1, leaf: new Uint8Array(32), bytes: JSON.stringify({ ...direct, oversight, detail }) }),
  );

/** A column's value before it becomes text. */
function expected(view: EntryView, column: string): string {
  const found = column.startsWith("oversight_")
    ? (view.oversight as Record<string, unknown> | null)?.[column.slice("oversight_".length)]
    : view[column as keyof EntryView];
  if (found === null || found === undefined) return "";
  if (typeof found === "object") return JSON.stringify(found);
  const text = String(found);
  return typeof found === "string" && FORMULA.some((sign) => text.startsWith(sign)) ? `'${text}` : text;
}

test("a CSV reader gets every field of every entry; formulas are prefixed with an apostrophe", () => {
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 5 }), (entries) => {
      const [head, ...rows]: string[][] = parse(csvHeader() + csvRows(entries), { record_delimiter: "\r\n" });
      expect(head).toEqual([...CSV_COLUMNS]);
      expect(rows).toEqual(entries.map((each) => CSV_COLUMNS.map((column) => expected(each, column))));
    }),
  );
});

test("the output equals the library's for whole rows", () => {
  const cell = fc.oneof(value, fc.constant(null), fc.stringMatching(/^[\w.:/ -]{1,6}$/));
  fc.assert(
    fc.property(fc.record(Object.fromEntries(DIRECT.map((name) => [name, cell]))), (direct) => {
      const view = viewEntry({ seq: 1, leaf: new Uint8Array(32), bytes: JSON.stringify(direct) });
      const row = CSV_COLUMNS.map((column) => (column in view ? view[column as keyof EntryView] : null));
      // By itself, the library leaves a lone carriage return unquoted.
      const options = { record_delimiter: "\r\n", escape_formulas: true, quoted_match: /[\r\n]/ };
      expect(csvRows([view])).toBe(stringify([row], options));
    }),
  );
});

test("columns are the entry's fields in the contract's order, with oversight expanded, and rows end with CRLF", () => {
  const view = viewEntry({
    seq: 7,
    leaf: new Uint8Array(32).fill(255),
    bytes: JSON.stringify({
      action: "agent.stop",
      credits: -5,
      detail: { note: "=1+1" },
      oversight: { decision: "-", person: '=HYPERLINK("x")', role: "officer, acting" },
      seq: 7,
    }),
  });
  expect(csvHeader()).toBe(
    "seq,prev,leaf,ts,phase,ref,action,outcome,code,channel,request_id,actor,agent,tier,model,task,tool,input_hash," +
      "output_hash,credits,oversight_person,oversight_role,oversight_decision,oversight_presented_at," +
      "oversight_decided_at,oversight_target_seq,oversight_arguments_hash,oversight_reason_hash,detail\r\n",
  );
  expect(csvRows([view])).toBe(
    `7,,${"ff".repeat(32)},,,,agent.stop,,,,,,,,,,,,,-5,"'=HYPERLINK(""x"")","officer, acting",'-,,,,,,` +
      '"{""note"":""=1+1""}"\r\n',
  );
  expect(csvRows([])).toBe("");
});
