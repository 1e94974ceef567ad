import { describe, expect, test } from "bun:test";
import type { WritingStyle } from "../../../src/connectors/openapi/binding.ts";
import { headerText, pairsOf, pathText } from "../../../src/connectors/openapi/call/style.ts";

/** The values of the style examples (OpenAPI 3.1.1, 4.8.12.4). Their parameter is named `color`. */
const EMPTY = "";
const TEXT = "blue";
const LIST = ["blue", "black", "brown"];
const FIELDS = { R: 100, G: 200, B: 150 };

type Row = readonly [style: WritingStyle["style"], explode: boolean, value: unknown, written: string];

describe("the specification's style examples, in a path", () => {
  test.each<Row>([
    ["matrix", false, EMPTY, ";color"],
    ["matrix", false, TEXT, ";color=blue"],
    ["matrix", false, LIST, ";color=blue,black,brown"],
    ["matrix", false, FIELDS, ";color=R,100,G,200,B,150"],
    ["matrix", true, EMPTY, ";color"],
    ["matrix", true, TEXT, ";color=blue"],
    ["matrix", true, LIST, ";color=blue;color=black;color=brown"],
    ["matrix", true, FIELDS, ";R=100;G=200;B=150"],
    ["label", false, EMPTY, "."],
    ["label", false, TEXT, ".blue"],
    ["label", false, LIST, ".blue,black,brown"],
    ["label", false, FIELDS, ".R,100,G,200,B,150"],
    ["label", true, EMPTY, "."],
    ["label", true, TEXT, ".blue"],
    ["label", true, LIST, ".blue.black.brown"],
    ["label", true, FIELDS, ".R=100.G=200.B=150"],
    ["simple", false, EMPTY, ""],
    ["simple", false, TEXT, "blue"],
    ["simple", false, LIST, "blue,black,brown"],
    ["simple", false, FIELDS, "R,100,G,200,B,150"],
    ["simple", true, TEXT, "blue"],
    ["simple", true, LIST, "blue,black,brown"],
    ["simple", true, FIELDS, "R=100,G=200,B=150"],
  ])("%s, explode %p: %j", (style, explode, value, written) => {
    expect(pathText("color", value, { style, explode })).toBe(written);
  });
});

describe("the specification's style examples, in a query", () => {
  test.each<Row>([
    ["form", false, EMPTY, "color="],
    ["form", false, TEXT, "color=blue"],
    ["form", false, LIST, "color=blue,black,brown"],
    ["form", false, FIELDS, "color=R,100,G,200,B,150"],
    ["form", true, EMPTY, "color="],
    ["form", true, TEXT, "color=blue"],
    ["form", true, LIST, "color=blue&color=black&color=brown"],
    ["form", true, FIELDS, "R=100&G=200&B=150"],
    ["spaceDelimited", false, LIST, "color=blue%20black%20brown"],
    ["spaceDelimited", false, FIELDS, "color=R%20100%20G%20200%20B%20150"],
    ["pipeDelimited", false, LIST, "color=blue%7Cblack%7Cbrown"],
    ["pipeDelimited", false, FIELDS, "color=R%7C100%7CG%7C200%7CB%7C150"],
    ["deepObject", true, FIELDS, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"],
  ])("%s, explode %p: %j", (style, explode, value, written) => {
    expect(queryOf("color", value, { style, explode })).toBe(written);
  });
});

describe("cases that the specification leaves open", () => {
  test.each<readonly [what: string, value: unknown, style: WritingStyle, written: string]>([
    ["an empty list is left out", [], { style: "form", explode: false }, ""],
    ["an empty object is left out", {}, { style: "form", explode: true }, ""],
    ["a nested list is JSON", [[1], null], { style: "form", explode: true }, "a=%5B1%5D&a=null"],
    ["a nested object in brackets", { b: { c: [1, 2] } }, deep(), "a%5Bb%5D%5Bc%5D=1&a%5Bb%5D%5Bc%5D=2"],
    ["deepObject with a text", "x y", deep(), "a=x%20y"],
    [
      "JSON, if that is the content type",
      { b: 1 },
      { style: "form", explode: true, json: true },
      "a=%7B%22b%22%3A1%7D",
    ],
    [
      "reserved characters that end nothing",
      ":/?#[]@!$&'()*+,;= %",
      { style: "form", explode: true, allowReserved: true },
      "a=:/?%23%5B%5D@!$%26'()*%2B,;%3D%20%25",
    ],
  ])("%s", (_, value, style, written) => {
    expect(queryOf("a", value, style)).toBe(written);
  });

  test("a header's value is not encoded", () => {
    expect(headerText(["a b", "c/d"], { style: "simple", explode: false })).toBe("a b,c/d");
  });
});

function deep(): WritingStyle {
  return { style: "deepObject", explode: true };
}

function queryOf(name: string, value: unknown, style: WritingStyle): string {
  return pairsOf(name, value, style)
    .map((pair) => pair.join("="))
    .join("&");
}
