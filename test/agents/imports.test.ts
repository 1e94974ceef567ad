import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const SRC = join(import.meta.dir, "../../src");
const PACKAGES = [/^typebox(\/|$)/, /^@ai-sdk\/provider$/];
const ROOMS = [join(SRC, "agents/"), join(SRC, "base/")];

function isAllowed(file: string, path: string): boolean {
  if (!path.startsWith(".")) return PACKAGES.some((pattern) => pattern.test(path));
  return ROOMS.some((room) => join(dirname(file), path).startsWith(room));
}

test("the framework imports only base, typebox and the providers' interface, and no Bun or Node API", () => {
  const names = readdirSync(join(SRC, "agents"), { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => name.endsWith(".ts")).map((name) => join(SRC, "agents", name));
  expect(files.length).toBeGreaterThan(20);
  for (const file of files) {
    const source = readFileSync(file, "utf8");
    const imports = [...source.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map(([, path]) => path ?? "");
    expect({ file, foreign: imports.filter((path) => !isAllowed(file, path)) }).toEqual({
      file,
      foreign: [],
    });
    expect(source).not.toMatch(/\b(Bun|process|Buffer)\.[a-z]/);
  }
});
