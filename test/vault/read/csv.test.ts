import { describe, expect, test } from "bun:test";
import { readText, UnreadableDocument } from "../../../src/vault/read/read.ts";

const rowsOf = async (csv: string) => {
  const { text, blocks } = await readText(csv, "text/csv");
  expect(blocks.every(({ kind }) => kind === "row")).toBe(true);
  return blocks.map(({ start, end }) => text.slice(start, end));
};

describe("CSV is refused", () => {
  test.each([
    ["with a quote that is never closed", 'a,b\n1,2\n3,"x\n', "line 3"],
    ["with text after a quote", 'a,b\n"1"2,3\n', "line 2"],
    ["with a quote in the middle", 'a,b\n1,2\n3,5" disk\n', "line 3"],
    ["without values", ",,\n,,\n", "contains no text"],
    ["that expands to too much", `${"x".repeat(50_000)},b\n${"1,2\n".repeat(1_000)}`, "20,000,000"],
  ])("%s", async (_, csv, message) => {
    const error = await readText(csv, "text/csv").catch((reason) => reason);
    expect(error).toBeInstanceOf(UnreadableDocument);
    expect(error.field).toBe("/text");
    expect(error.message).toContain(message);
  });
});

describe("CSV is read", () => {
  test.each<[string, string, string[]]>([
    [
      "with commas",
      "name,city\nAda,London\nAlan,Wilmslow\n",
      ["name: Ada; city: London", "name: Alan; city: Wilmslow"],
    ],
    ["with semicolons and decimal commas", "a;b\n1,5;2,5\n3,5;4", ["a: 1,5; b: 2,5", "a: 3,5; b: 4"]],
    ["with tabs", "a\tb\n1, 2\t3\n", ["a: 1, 2; b: 3"]],
    ["with bars", "a|b\n1|2", ["a: 1; b: 2"]],
    ["with quotes", 'a,b\n" x, ""y""\n z",2\n', ['a:  x, "y"\n z; b: 2']],
    ["with a delimiter in a quoted header", '"a;b;c",d\n1,2\n', ["a;b;c: 1; d: 2"]],
    ["with short and long rows", "a,b\n1\n1,2,3\n", ["a: 1", "a: 1; b: 2; column 3: 3"]],
    ["with empty values and lines", "a,b,\n,2,3\n\n,,\n", ["b: 2; column 3: 3"]],
    ["with Windows line ends", "\uFEFFa,b\r\n1,2\r\n3,4\n5,6", ["a: 1; b: 2", "a: 3; b: 4", "a: 5; b: 6"]],
    ["with one column", "a\n1\n2", ["a: 1", "a: 2"]],
    ["with a header only", "a,b", ["a; b"]],
  ])("%s", async (_, csv, expected) => {
    expect(await rowsOf(csv)).toEqual(expected);
  });
});

test("rows are on separate lines, with exact values", async () => {
  expect((await readText("id,n\n007,1.50\n008,1e3", "text/csv")).text).toBe(
    "id: 007; n: 1.50\nid: 008; n: 1e3",
  );
});
