import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { preferredType } from "../../src/http/answer/accept.ts";

const OFFERED = ["application/json", "application/x-ndjson", "text/csv", "application/zip"] as const;

describe("what a client wants most", () => {
  test.each<[accept: string | null, type: (typeof OFFERED)[number] | undefined]>([
    [null, undefined],
    ["", undefined],
    [",;q=1,/", undefined],
    ["image/png", undefined],
    ["text/html, application/xhtml+xml", undefined],
    ["text/csv;q=0", undefined],
    ["text/csv;q=0, */*", "application/json"],
    ["*/*;q=0.1, text/csv;q=0, application/*;q=0", undefined],
    ["*/*", "application/json"],
    ["application/*", "application/json"],
    ["text/*", "text/csv"],
    ["text/csv", "text/csv"],
    ["TEXT/CSV", "text/csv"],
    ["  text/csv ; header=present ; q=0.5 ", "text/csv"],
    ["text/csv, */*", "text/csv"],
    ["*/*, text/csv", "text/csv"],
    ["text/csv;q=0.8, */*", "application/json"],
    ["application/zip, text/csv", "application/zip"],
    ["text/csv, application/zip", "text/csv"],
    ["application/zip;q=0.9, text/csv", "text/csv"],
    ["application/json;q=0.1, application/x-ndjson;q=0.2", "application/x-ndjson"],
    ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json"],
    ["text/csv;q=2, application/zip;q=0.001", "application/zip"],
    ["text/csv;q=abc", undefined],
    ["text/csv;q=0.1234", undefined],
    ["text/csv;q=1.000", "text/csv"],
    ["application/json;q=0, application/*", "application/x-ndjson"],
    ["text/csv;q=0, text/csv;q=1", undefined],
  ])("%p: %p", (accept, type) => {
    expect(preferredType(accept, OFFERED)).toBe(type);
  });

  test("whatever a client sends, the answer has one of the offered types, or none", () => {
    const piece = fc.constantFrom(
      "*/*",
      "text/*",
      "text/csv",
      "application/zip",
      "a/b",
      ";q=",
      "0.5",
      ",",
      " ",
      "=",
      "/",
    );
    const header = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")),
    );
    fc.assert(
      fc.property(header, (accept) => {
        const type = preferredType(accept, OFFERED);
        expect(type === undefined || OFFERED.includes(type)).toBe(true);
      }),
    );
  });
});
