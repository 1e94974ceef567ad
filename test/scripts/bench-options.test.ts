/** The arguments of `scripts/bench`. */
import { expect, test } from "bun:test";
import { isChosen, parseOptions } from "../../scripts/benchmarks/options.ts";

test.each([
  [["peers", "--only", "nothing-like-it"], "no scenario is called that"],
  [["peers", "--only"], "--only takes"],
  [["peers", "--only", "mastra,"], "--only takes"],
  [["nowhere"], "there is no area nowhere"],
  [["api", "run"], "one area at a time"],
  [["--rounds", "0"], "--rounds takes"],
])("%j is refused with a reason", (args, reason) => {
  expect(parseOptions(args, {})).toStartWith(reason);
});

test("--only chooses scenarios by parts of their names, in any case", () => {
  const options = parseOptions(["peers", "--only", "VOLT,mas"], {});
  if (typeof options === "string") throw new Error(options);
  expect(["Portkey", "VoltAgent", "Mastra"].filter((name) => isChosen(name, options))).toEqual([
    "VoltAgent",
    "Mastra",
  ]);
});

test("other products are installed only if the area peers is named, or with --peers", () => {
  for (const [args, expected] of [
    [[], false],
    [["run"], false],
    [["run", "--peers"], true],
    [["peers"], true],
  ] as const) {
    expect(parseOptions(args, {})).toMatchObject({ peers: expected });
  }
});
