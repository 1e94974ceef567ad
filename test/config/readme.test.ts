import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { configReference } from "../../src/config/reference.ts";

test("src/config/README.md is what `gatehouse config reference` prints", () => {
  const written = readFileSync(join(import.meta.dir, "../../src/config/README.md"), "utf8");
  expect(written.trimEnd()).toBe(configReference().trimEnd());
});
