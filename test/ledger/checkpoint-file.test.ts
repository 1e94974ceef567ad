/** The checkpoint file outside the data directory, to which one process after another appends. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import { CheckpointFile } from "../../src/ledger/checkpoints/file.ts";
import { tempDir } from "../support/process.ts";

let directory: ReturnType<typeof tempDir>;
let path: string;
beforeEach(() => {
  directory = tempDir();
  path = join(directory.path, "checkpoints.txt");
});
afterEach(() => directory.remove());

async function append(...notes: string[]): Promise<string> {
  const file = new CheckpointFile(path, silentLog);
  file.append(notes);
  await file.close();
  return readFileSync(path, "utf8");
}

test("a killed process's incomplete note is separated from the next note", async () => {
  writeFileSync(path, "first\n\nsec");
  expect(await append("third\n")).toBe("first\n\nsec\n\nthird\n\n");
});

test.each([
  ["nothing", ""],
  ["a whole note", "first\n\n"],
])("%s needs no empty line after it", async (_, before) => {
  writeFileSync(path, before);
  expect(await append("second\n", "third\n")).toBe(`${before}second\n\nthird\n\n`);
});
