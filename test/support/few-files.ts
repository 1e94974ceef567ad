import { join } from "node:path";

const MODULES = join(import.meta.dir, "..", "..", "src", "base", "open-files");

const PRELUDE = `
import { closeSync, openSync, readdirSync, writeSync } from "node:fs";
import { openFilesReserve as reserve, isOutOfOpenFiles } from "${MODULES}/reserve.ts";
import { startThread } from "${MODULES}/thread.ts";
const taken = [];
function takeAll() {
  for (;;) try { taken.push(openSync("/dev/null", "r")); } catch (error) {
    if (!isOutOfOpenFiles(error)) throw error;
    return;
  }
}
const giveBack = (count) => { while (count-- > 0) closeSync(taken.pop()); };
const report = (value) => writeSync(1, JSON.stringify(value) + "\\n");
`;

/**
 * Runs a program that may open 96 files, in a process of its own, because the limit would affect this one too. It can
 * take all descriptors (`takeAll`), give some back (`giveBack`), and report values (`report`).
 *
 * @returns its messages and its exit code
 */
export async function withFewFiles(program: string): Promise<{ reported: unknown[]; code: number }> {
  const command = [
    "/bin/sh",
    "-c",
    'ulimit -n 96 && exec "$@"',
    "sh",
    process.execPath,
    "-e",
    PRELUDE + program,
  ];
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "inherit" });
  const text = await new Response(child.stdout).text();
  const reported = text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  return { reported, code: await child.exited };
}
