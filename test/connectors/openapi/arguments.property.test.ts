import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../../../src/agents/index.ts";
import type { OperationBinding, ParameterBinding } from "../../../src/connectors/openapi/binding.ts";
import { requestOf } from "../../../src/connectors/openapi/call/request.ts";
import { ArgumentFault } from "../../../src/connectors/openapi/fault.ts";

const BASE = "https://api.example/base/v1";
const AUTH = { type: "query", name: "api_key", value: "s3cret value" } as const;

/** Texts that untrusted callers might choose. */
const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string(),
  fc.constantFrom(
    "..",
    ".",
    "../../admin",
    "%2e%2e",
    "..%2f",
    "/",
    "//evil.example/",
    "\\..\\",
    "?a=b#c",
    "@evil",
    "\r\nX: y",
  ),
  fc.constantFrom(
    "%",
    "%00",
    "\0",
    "+",
    "&api_key=x",
    ";a=b",
    "é",
    "💥",
    " ",
    "a b",
    "~",
    "!'()*",
    "api_key",
  ),
);

function bindingOf(path: string, parameters: readonly ParameterBinding[]): OperationBinding {
  return { method: "GET", path, server: BASE, parameters: [...parameters], body: null };
}

const inPath = (name: string): ParameterBinding => ({
  argument: name,
  name,
  in: "path",
  style: "simple",
  explode: false,
});
const inQuery = (name: string, more: Partial<ParameterBinding> = {}): ParameterBinding => {
  return { argument: name, name, in: "query", style: "form", explode: true, ...more };
};

describe("whatever the arguments are", () => {
  test("a request stays at its origin, below its base, in its segments, and decodes back to them", () => {
    const binding = bindingOf("/a/{x}/b/{y}.json", [
      inPath("x"),
      inPath("y"),
      inQuery("q"),
      inQuery("r", { allowReserved: true }),
    ]);
    fc.assert(
      fc.property(fc.record({ x: text, y: text, q: text, r: text }), (input) => {
        const url = urlUnlessRefused(binding, input);
        if (url === undefined) {
          // Only values without a form in a path are refused.
          const hasForm = input.x !== "" && input.x !== "." && input.x !== "..";
          expect(hasForm && Object.values(input).every((each) => each.isWellFormed())).toBe(false);
          return;
        }
        expect(url.origin).toBe("https://api.example");
        expect(url.hash).toBe("");
        const [, base, version, a, x = "", b, y = "", ...rest] = url.pathname.split("/");
        expect([base, version, a, b, rest]).toEqual(["base", "v1", "a", "b", []]);
        expect(decodeURIComponent(x)).toBe(input.x);
        expect(decodeURIComponent(y)).toBe(`${input.y}.json`);
        expect([...url.searchParams]).toEqual([
          ["q", input.q],
          ["r", input.r],
          ["api_key", AUTH.value],
        ]);
      }),
      { numRuns: 2_000 },
    );
  });

  test("lists and objects decode back, and never set the connector's own query parameter", () => {
    const binding = bindingOf("/a", [
      inQuery("list"),
      inQuery("fields"),
      inQuery("deep", { style: "deepObject" }),
    ]);
    const input = fc.record({
      list: fc.array(text, { minLength: 1 }),
      fields: fc.dictionary(text, text),
      deep: fc.dictionary(text, text),
    });
    fc.assert(
      fc.property(input, (given) => {
        const url = urlUnlessRefused(binding, given);
        const names = Object.keys(given.fields);
        if (url === undefined) {
          const texts = [
            ...given.list,
            ...Object.entries(given.fields).flat(),
            ...Object.entries(given.deep).flat(),
          ];
          expect(names.includes("api_key") || texts.some((each) => !each.isWellFormed())).toBe(true);
          return;
        }
        expect([...url.searchParams]).toEqual([
          ...given.list.map((item): [string, string] => ["list", item]),
          ...Object.entries(given.fields),
          ...Object.entries(given.deep).map(([key, item]): [string, string] => [`deep[${key}]`, item]),
          ["api_key", AUTH.value],
        ]);
      }),
      { numRuns: 1_000 },
    );
  });

  test.each(["label", "matrix"] as const)("a path in style %s keeps its segment", (style) => {
    const binding = bindingOf("/a/{x}/z", [{ ...inPath("x"), style, explode: true }]);
    fc.assert(
      fc.property(fc.oneof(text, fc.array(text), fc.dictionary(text, text)), (x) => {
        const url = urlUnlessRefused(binding, { x });
        if (url === undefined) return;
        const [, , , a, segment, z, ...rest] = url.pathname.split("/");
        expect([a, z, rest]).toEqual(["a", "z", []]);
        expect(segment).toStartWith(style === "label" ? "." : ";");
      }),
      { numRuns: 500 },
    );
  });

  test("headers are one line, or nothing is sent", () => {
    const binding = bindingOf("/a", [
      { argument: "h", name: "X-H", in: "header", style: "simple", explode: false },
    ]);
    fc.assert(
      fc.property(text, (h) => {
        try {
          const { init } = requestOf(binding, BASE, null, { h });
          expect(new Headers(init.headers).get("x-h")).toBe(h.replace(/^[\t ]+|[\t ]+$/g, ""));
        } catch (error) {
          expect(error).toBeInstanceOf(ArgumentFault);
          expect(/^[\t -~]*$/.test(h)).toBe(false);
        }
      }),
      { numRuns: 500 },
    );
  });
});

function urlUnlessRefused(binding: OperationBinding, input: JsonObject): URL | undefined {
  try {
    return requestOf(binding, BASE, AUTH, input).url;
  } catch (error) {
    if (error instanceof ArgumentFault) return undefined;
    throw error;
  }
}
