import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dir, "../../src/agents");
const ALLOWED = [/^\.\/[a-z-]+\.ts$/, /^\.\.\/base\/[a-z]+\.ts$/, /^typebox(\/|$)/, /^@ai-sdk\/provider$/];

test("the framework imports only base, typebox and the providers' interface, and no Bun or Node API", () => {
  const files = readdirSync(folder).filter((name) => name.endsWith(".ts"));
  expect(files.length).toBeGreaterThan(10);
  for (const file of files) {
    const source = readFileSync(join(folder, file), "utf8");
    const imports = [...source.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map(([, path]) => path ?? "");
    const foreign = imports.filter((path) => !ALLOWED.some((pattern) => pattern.test(path)));
    expect({ file, foreign }).toEqual({ file, foreign: [] });
    expect(source).not.toMatch(/\b(Bun|process|Buffer)\.[a-z]/);
  }
});
