import { describe, expect, test } from "bun:test";
import { readText } from "../../../src/vault/read/read.ts";

async function blocksOf(html: string, type = "text/html"): Promise<string[]> {
  const document = await readText(html, type);
  return document.blocks.map(
    ({ kind, level, start, end }) => `${kind}${level || ""} ${document.text.slice(start, end)}`,
  );
}

test("too many nested elements are refused", async () => {
  await expect(readText(`${"<b>".repeat(1_001)}a`, "text/html")).rejects.toThrow(
    "elements nested more than 1000 levels deep",
  );
  expect((await readText(`${"<b>".repeat(999)}a`, "text/html")).text).toBe("a");
});

describe("not read is", () => {
  test.each([
    ["script", "<script>if (a < b) c()</script>"],
    ["style", "<style>p { }</style>"],
    ["template", "<template><p>a</p></template>"],
    ["noscript", "<noscript>Turn it on</noscript>"],
    ["the menu", "<nav><ul><li>Home</ul></nav>"],
    ["a picture's own text", "<svg><title>a</title><text>b</text></svg>"],
    ["form fields", "<select><option>a</select><textarea>b</textarea><button>c</button>"],
    ["hidden content", "<div hidden><p>a<div>b</div></div>"],
    ["content hidden from screen readers", '<span aria-hidden="TRUE">x</span>'],
    ["content hidden by a style", '<p style="color: red; DISPLAY : none">x'],
    ["content made invisible by a style", '<p style="visibility:hidden">x'],
    ["a comment", "<!-- a -->"],
    ["the head", '<head><meta name="a" content="b"><link href="c"><base href="d"></head>'],
    ["the fallback content of a frame", "<iframe>a</iframe>"],
  ])("%s", async (_, html) => {
    expect(await blocksOf(`${html}<p>text</p>`)).toEqual(["paragraph text"]);
  });
});

describe("read is", () => {
  test.each<[string, string, string[]]>([
    [
      "a page by its headings",
      "<!doctype html><title>T</title><body><header>H</header><h1>A  <i>b</i></h1><p>c<p>d<h2>E</h2>f<footer>g</footer>",
      [
        "paragraph H",
        "heading1 A b",
        "paragraph c",
        "paragraph d",
        "heading2 E",
        "paragraph f",
        "paragraph g",
      ],
    ],
    [
      "a list",
      "<ul><li>a<ul><li>b</ul><li><p>c</p><p>d</p></ul>e",
      ["paragraph - a", "paragraph - b", "paragraph - c", "paragraph d", "paragraph e"],
    ],
    [
      "a table by rows",
      "<table><caption>C</caption><tr><th>a<th>b<tr><td>1<td>2 <b>3</b><tr><td><p>4</p><td></table>",
      ["paragraph C", "row a | b", "row 1 | 2 3", "row 4 | "],
    ],
    [
      "a table used for page layout, as the page",
      "<table><tr><td>menu<td><h1>A</h1>b<table><tr><td>1<td>2</table></table>",
      ["paragraph menu", "heading1 A", "paragraph b", "row 1 | 2"],
    ],
    ["a layout of one cell", "<table><tr><td><p>a<p>b</table>", ["paragraph a", "paragraph b"]],
    ["code unchanged", "<pre>\n  a\n    <b>b</b>\n\nc  \n</pre>d", ["code   a\n    b\n\nc", "paragraph d"]],
    [
      "an entity",
      "<p>a&amp;b &lt;c&gt; &eacute;&#x1F600;&nbsp;d &unknown; &amp",
      ["paragraph a&b <c> é😀 d &unknown; &"],
    ],
    ["white space as one space", "<p>\n a \t\n <span> b</span>c\n<wbr>d</p>", ["paragraph a bc d"]],
    ["a break as a line", "<p>a<br>b<br/><br>c</p><h2>d<br>e</h2>", ["paragraph a\nb\nc", "heading2 d e"]],
    ["a picture's alternative", '<p>a<img src=x alt="of b">c<img>', ["paragraph a of b c"]],
    ["ruby without its reading", "<p><ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>字", ["paragraph 漢字"]],
    ["an unknown element as text", "<p>a<x-b>c</x-b>d", ["paragraph acd"]],
    [
      "tag soup",
      "</div><p>a</b></p></p><td>b</tr><li>c<h1>d</h3><p>e < f <3",
      ["paragraph a", "paragraph b", "paragraph - c", "heading1 d", "paragraph e < f <3"],
    ],
    ["text after an unclosed head", "<head><title>T</title><p>a", ["paragraph a"]],
    ["definitions", "<dl><dt>a<dd>b</dl>", ["paragraph a", "paragraph b"]],
  ])("%s", async (_, html, expected) => {
    expect(await blocksOf(html)).toEqual(expected);
  });
});

test("blocks are on separate lines", async () => {
  const html = "<h1>A</h1><p>b</p><ul><li>c<li>d</ul><table><tr><td>1<td>2<tr><td>3<td>4</table>";
  expect((await readText(html, "text/html")).text).toBe("A\n\nb\n\n- c\n- d\n\n1 | 2\n3 | 4");
});

test("XHTML closes elements with a slash and has character data", async () => {
  const xhtml = '<html><head><title/><script src="a"/></head><body><p>a<![CDATA[ <b> ]]></p></body></html>';
  expect(await blocksOf(xhtml, "application/xhtml+xml")).toEqual(["paragraph a <b>"]);
});
