import { expect, test } from "bun:test";
import type { ContentType } from "../../../src/vault/read/document.ts";
import { statedTitle } from "../../../src/vault/read/title.ts";

const MARKDOWN = "text/markdown";
const HTML = "text/html";

test.each<[name: string, type: ContentType, text: string, title: string | null]>([
  ["the first heading of level 1", MARKDOWN, "## a\n\n# *b*  c #\n\n# d", "*b* c"],
  ["that heading, also when underlined", MARKDOWN, "a\nb\n=\n", "a b"],
  ["the title in front matter", MARKDOWN, "---\nx: 1\ntitle: 'A title'\n---\n# b", "A title"],
  ["no block of text in front matter", MARKDOWN, "---\nx: 1\ntitle: >\n  A\n---\n# b", "b"],
  ["nothing without a heading of level 1", MARKDOWN, "## a", null],
  ["no empty heading", MARKDOWN, "#\n\n# b", "b"],
  ["the page's", HTML, "<title> A &amp;\n b </title><h1>c</h1>", "A & b"],
  ["the first of a page's titles", HTML, "<title>A</title>b<title>C</title>", "A"],
  ["a page's first heading", HTML, "<title> </title><h2>b</h2><h1>c</h1>", "b"],
  ["nothing if a page has neither", HTML, "<p>a", null],
  ["one without control characters", HTML, "<title>A\u0007\u001b[2J</title>", "A[2J"],
  ["an XHTML page's heading", "application/xhtml+xml", "<html><title/><h1>a</h1></html>", "a"],
  ["nothing for other types", "text/plain", "# a", null],
])("the stated title is %s", (_, type, text, title) => {
  expect(statedTitle(text, type)).toBe(title);
});
