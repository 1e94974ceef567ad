import { expect, test } from "bun:test";
import { modelRequests } from "../../src/limits/request-plan.ts";

/** 96 calls and 64 streams of connectors, 18 requests for vectors, and 10 others. */
const OTHERS = 188;

test.each([
  ["Bun's own limit", undefined, null, 256 - OTHERS],
  ["the variable", "1024", null, 1_024 - OTHERS],
  ["a value that Bun ignores", "many", null, 256 - OTHERS],
  ["more than Bun accepts", "65536", null, 256 - OTHERS],
  ["fewer than all others need", "100", null, 4],
  ["few descriptors", "1024", 384, 384 - 128 - OTHERS],
  ["many descriptors", "1024", 100_000, 1_024 - OTHERS],
])("requests to models get what %s leaves", (_name, variable, descriptors, expected) => {
  expect(modelRequests(variable, descriptors)).toBe(expected);
});
