import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { fromMarkdown } from "mdast-util-from-markdown";
import { readText } from "../../../src/vault/read/read.ts";

async function blocksOf(text: string): Promise<string[]> {
  const document = await readText(text, "text/markdown");
  return document.blocks.map(
    ({ kind, level, start, end }) => `${kind}${level || ""} ${document.text.slice(start, end)}`,
  );
}

describe("the blocks of Markdown", () => {
  test.each<[string, string, string[]]>([
    [
      "headings and paragraphs",
      "# A\ntext\nmore\n\n## B ##\n###### C",
      ["heading1 # A", "paragraph text\nmore", "heading2 ## B ##", "heading6 ###### C"],
    ],
    ["no headings", "#A\n\n####### b\n\n    # c", ["paragraph #A", "paragraph ####### b", "code     # c"]],
    ["underlined headings", "A\nB\n===\n\nC\n--\nd", ["heading1 A\nB\n===", "heading2 C\n--", "paragraph d"]],
    ["rules", "a\n\n---\n\nb\n***\nc", ["paragraph a", "paragraph b", "paragraph c"]],
    [
      "code between fences",
      "a\n```sh\n# no heading\n\n```\nb\n~~~\n```\n~~~~\nc",
      ["paragraph a", "code ```sh\n# no heading\n\n```", "paragraph b", "code ~~~\n```\n~~~~", "paragraph c"],
    ],
    ["unclosed code", "```\na\n\n# b\n\n", ["code ```\na\n\n# b"]],
    ["no fence", "```a`\n# b", ["paragraph ```a`", "heading1 # b"]],
    [
      "items of a list",
      "- a\n  b\n- c\n  - d\n\n  e\n\n1. f\n2) g\n\nh",
      ["paragraph - a\n  b", "paragraph - c", "paragraph - d", "paragraph e", "paragraph 1. f"].concat([
        "paragraph 2) g",
        "paragraph h",
      ]),
    ],
    ["a year, not an item", "It was in\n1986. A year", ["paragraph It was in\n1986. A year"]],
    [
      "code in a list, and after it",
      "- ```\n  # no\n\n  ```\n- a\n  ```\n  # no\n# yes",
      ["code - ```\n  # no\n\n  ```", "paragraph - a", "code   ```\n  # no", "heading1 # yes"],
    ],
    [
      "headings in a list separate nothing",
      "- # a\n  # b\n\n# c",
      ["paragraph - # a\n  # b", "heading1 # c"],
    ],
    ["quotes", "a\n> # b\n> c\n\nd", ["paragraph a", "paragraph > # b\n> c", "paragraph d"]],
    [
      "rows of a table",
      "| a | b |\n|---|:-:|\n| 1 | 2 |\n3 | 4\n\nend",
      ["row | a | b |\n|---|:-:|", "row | 1 | 2 |", "row 3 | 4", "paragraph end"],
    ],
    ["raw HTML", "<!-- a\n\n# b\n-->\n\n<p>c</p>", ["paragraph <!-- a\n\n# b\n-->", "paragraph <p>c</p>"]],
    [
      "Windows line ends",
      "# A\r\n\r\nb\r\nc\r\n```\r\nd\r\n```\r\n",
      ["heading1 # A", "paragraph b\r\nc"].concat(["code ```\r\nd\r\n```"]),
    ],
    ["a byte order mark", "\uFEFF# A", ["heading1 # A"]],
  ])("%s", async (_, text, expected) => {
    expect(await blocksOf(text)).toEqual(expected);
  });
});

describe("front matter", () => {
  test.each<[string, string, string[]]>([
    ["is text but not a block", "---\na: b\n---\n# C", ["heading1 # C"]],
    ["may also end with dots", "---\n# note\ntitle: b\n...\nc", ["paragraph c"]],
    ["is searched if there is nothing else", "---\na: b\n---\n", ["paragraph ---\na: b\n---"]],
    ["has keys", "---\n\nNo front matter\n\n---\n", ["paragraph No front matter"]],
    ["has an end", "---\na: b\n\nc", ["paragraph a: b", "paragraph c"]],
  ])("%s", async (_, text, expected) => {
    expect(await blocksOf(text)).toEqual(expected);
  });
});

const pieces = fc.constantFrom(
  ..."# A|## B b|### C ###|text|more text|1. one|- item|* item|  indented|    deep|> quote|> # f|- # h|  ```|\ttab|#no|```|```js|~~~|a\nb|D\n===|E\n---|***".split(
    "|",
  ),
);
const markdown = fc
  .array(fc.tuple(pieces, fc.constantFrom("\n", "\n\n")), { minLength: 1, maxLength: 12 })
  .map((parts) => parts.map(([piece, gap]) => piece + gap).join(""));

test("headings that divide the document are those that a full parser finds", async () => {
  await fc.assert(
    fc.asyncProperty(markdown, async (text) => {
      const tree = fromMarkdown(text);
      const theirs = tree.children.flatMap((node) => {
        if (node.type !== "heading") return [];
        return [`${node.depth} ${node.position?.start.offset} ${node.position?.end.offset}`];
      });
      const { blocks } = await readText(text, "text/markdown");
      const ours = blocks.flatMap(({ kind, level, start, end }) =>
        kind === "heading" ? [`${level} ${start} ${end}`] : [],
      );
      expect(ours).toEqual(theirs);
    }),
    { numRuns: 400 },
  );
});

describe("a million characters are read at once, even of", () => {
  test.each([
    ["quotes in quotes", ">"],
    ["lists in lists", "- "],
    ["links", "[a]("],
    ["emphasis", "a**b_"],
    ["items", "- a\n"],
    ["fences", "```\n"],
    ["rows", "a|b\n-|-\n"],
    ["rules", "- - "],
  ])("%s", async (_, piece) => {
    const text = piece.repeat(1_000_000 / piece.length);
    expect((await readText(text, "text/markdown")).text).toBe(text);
  });
});
