import { expect, test } from "bun:test";
import { load, problems } from "./support.ts";

test.each([
  [
    "tools: { a b: 1 }",
    '"tools.a b" (F:1): is not a valid name here; expected a glob of tools, such as github.*, github.search or *',
  ],
  [
    'tools: { "*": -1 }',
    '"tools.*" (F:1): is -1; expected a number of credits, 0 or more, with at most six decimals',
  ],
  [
    "tools: { up.echo: 0.0000001 }",
    "tools.up.echo (F:1): is 1e-7; expected a number of credits, 0 or more, with at most six decimals",
  ],
])("%s is refused", (yaml, expected) => {
  expect(problems({ yaml })).toEqual([expected]);
});

test("prices of tools are exact to a millionth, and keep their order", () => {
  const yaml = 'tools: { "up.search_*": 0, up.*: 0.000001, "*": 2.5 }';
  expect(load({ yaml }).config.toolPrices).toEqual([
    { pattern: "up.search_*", micros: 0 },
    { pattern: "up.*", micros: 1 },
    { pattern: "*", micros: 2_500_000 },
  ]);
});
