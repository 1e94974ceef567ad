import { afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { type Desk, openDesk } from "../cli/support.ts";
import { BINARY } from "../support/process.ts";

/** The console as the built program serves it: all of its files are embedded. */
setDefaultTimeout(60_000);
let desk: Desk;

beforeAll(() => {
  const [built = ""] = BINARY;
  if (!existsSync(built)) throw new Error("there is no dist/gatehouse: run scripts/build");
});
beforeEach(() => {
  desk = openDesk({ program: BINARY });
});
afterEach(() => desk.clear());

const FILE = /\/console\/assets\/[\w-]+\.\w+/g;

test("the program contains every file that its page names, and every file that those name", async () => {
  const { url } = await desk.serve();
  const text = async (path: string): Promise<string> => {
    const answer = await fetch(url + path);
    expect({ path, status: answer.status }).toEqual({ path, status: 200 });
    return answer.text();
  };
  const seen = new Set<string>();
  const waiting = ["/console"];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    for (const [named] of (await text(path)).matchAll(FILE)) {
      if (!seen.has(named)) waiting.push(named);
      seen.add(named);
    }
  }
  const kinds = new Set([...seen].map((path) => path.split(".").at(-1)));
  expect([...kinds].sort()).toEqual(["css", "js", "svg"]);
  // Each page is a separate script.
  expect(seen.size).toBeGreaterThan(15);
  const page = await fetch(`${url}/console`);
  expect(page.headers.get("content-security-policy")).toContain("require-trusted-types-for 'script'");
});
