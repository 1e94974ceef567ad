import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isXmlTooDeep } from "../../../src/vault/read/xml-nesting.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

interface Element {
  readonly attribute: string;
  readonly children: readonly (Element | string)[];
}
const quiet = fc.constantFrom(
  "",
  "text",
  "<!-- <a> -->",
  "<![CDATA[<a><b>]]>",
  "<?a <b> ?>",
  "<e/>",
  '<e x="/>"/>',
  "&lt;",
);
const { element } = fc.letrec<{ element: Element }>((tie) => ({
  element: fc.record({
    attribute: fc.constantFrom("", ' x=">"', " x='<a>'", ' x="a/"', ' x="it\'s"'),
    children: fc.array(fc.oneof({ maxDepth: 5 }, quiet, tie("element")), { maxLength: 4 }),
  }),
}));

function write({ attribute, children }: Element): string {
  return `<a${attribute}>${children.map((each) => (typeof each === "string" ? each : write(each))).join("")}</a>`;
}
function depthOf({ children }: Element): number {
  return 1 + Math.max(0, ...children.map((each) => (typeof each === "string" ? 0 : depthOf(each))));
}

describe("elements of XML in each other", () => {
  test("are counted over the bytes as a parser finds them", () => {
    fc.assert(
      fc.property(element, (root) => {
        const xml = encode(`<?xml version="1.0"?><!DOCTYPE a>${write(root)}`);
        const depth = depthOf(root);
        expect(isXmlTooDeep(xml, depth)).toBe(false);
        expect(isXmlTooDeep(xml, depth - 1)).toBe(true);
      }),
    );
  });

  test.each([
    ["elements that are never closed", "<a>".repeat(50_000), true],
    ["closing tags first", "</a>".repeat(500) + "<a>".repeat(101), true],
    ["a tag without an end", `${"<a>".repeat(50)}<a`, false],
    ["a comment without an end", `<!--${"<a>".repeat(500)}`, false],
    ["many, one after the other", "<a></a>".repeat(50_000), false],
    ["nothing", "", false],
  ])("%s", (_name, xml, isDeep) => {
    expect(isXmlTooDeep(encode(xml), 100)).toBe(isDeep);
  });
});
