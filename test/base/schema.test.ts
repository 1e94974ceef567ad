import { describe, expect, test } from "bun:test";
import Type from "typebox";
import { Problem } from "../../src/base/errors.ts";
import { validator } from "../../src/base/schema.ts";

const body = validator(
  Type.Object(
    {
      name: Type.String({ pattern: "^[a-z]+$" }),
      scope: Type.Union([Type.String(), Type.Array(Type.String())]),
      tier: Type.Optional(Type.Integer({ minimum: 1 })),
      mode: Type.Optional(Type.Enum(["soft", "enforced"])),
      nested: Type.Optional(Type.Object({ list: Type.Array(Type.Object({ x: Type.Integer() })) })),
    },
    { additionalProperties: false },
  ),
);
const GOOD = { name: "a", scope: "b" };

describe("a refused value is named by its path", () => {
  test.each([
    ["a field that is missing", { scope: "b" }, "/name", "is required"],
    ["an unknown field", { ...GOOD, extra: 1 }, "/extra", "is not a known field"],
    ["a name that a pointer escapes", { ...GOOD, "a/b~c": 1 }, "/a~1b~0c", "is not a known field"],
    ["a number instead of text", { ...GOOD, name: 1 }, "/name", "must be string"],
    ["an integer given as text", { ...GOOD, tier: "1" }, "/tier", "must be integer"],
    ["a fraction", { ...GOOD, tier: 1.5 }, "/tier", "must be integer"],
    ["too small a number", { ...GOOD, tier: 0 }, "/tier", ">= 1"],
    ["a value that is not allowed", { ...GOOD, mode: "hard" }, "/mode", '"soft", "enforced"'],
    [
      "something deeply nested",
      { ...GOOD, nested: { list: [{ x: 1 }, { x: "2" }] } },
      "/nested/list/1/x",
      "must be integer",
    ],
    ["a value that fits no branch", { ...GOOD, scope: 5 }, "/scope", " or "],
    ["not an object", [], "", "must be object"],
    ["null", null, "", "must be object"],
  ])("%s", (_, value, path, message) => {
    const errors = body.errors(value);
    const found = errors.find((error) => error.path === path);
    expect(errors.map((error) => error.path)).toContain(path);
    expect(found?.message).toContain(message);
    expect(body.is(value)).toBe(false);
  });

  test("each once, all of them, as a 422", () => {
    try {
      body.parse({ name: 1, tier: "x", extra: true });
      throw new Error("it was taken");
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      expect(error.status).toBe(422);
      expect(error.errors?.map((each) => each.path).toSorted()).toEqual([
        "/extra",
        "/name",
        "/scope",
        "/tier",
      ]);
    }
  });

  test("up to thirty-two of them", () => {
    const list = Array.from({ length: 500 }, () => ({ x: "no" }));
    expect(body.errors({ ...GOOD, nested: { list } })).toHaveLength(32);
  });
});

test("a valid value is returned unchanged", () => {
  const value = { ...GOOD, tier: 2, nested: { list: [{ x: 1 }] } };
  expect(body.parse(value)).toBe(value);
  expect(body.errors(value)).toEqual([]);
});

test("a huge body is refused at once, and its names are not repeated in full", () => {
  const list = validator(Type.Object({ items: Type.Array(Type.String(), { maxItems: 3 }) }));
  const many = { items: Array.from({ length: 1_000_000 }, () => 1) };
  expect(list.errors(many)).toEqual([
    { path: "/items", message: "has too many values: at most 10000 can be checked" },
  ]);
  const strict = validator(Type.Object({}, { additionalProperties: false }));
  const [error] = strict.errors({ ["x".repeat(1_000_000)]: 1 });
  expect(error?.message).toBe("is not a known field");
  expect(error?.path.length).toBeLessThan(400);
});
