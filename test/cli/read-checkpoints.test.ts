/** Files of checkpoints are read piece by piece, however long they have become. */
import { afterAll, expect, test } from "bun:test";
import { closeSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { readCheckpointFile } from "../../src/cli/ledger/read-checkpoints.ts";
import { tempDir } from "../support/process.ts";

const directory = tempDir();
afterAll(() => directory.remove());
const path = join(directory.path, "checkpoints");

const ROOT = Buffer.alloc(32, 1).toString("base64");
const SIGNATURE = Buffer.alloc(68, 2).toString("base64");
const checkpoint = (size: number) =>
  `gatehouse/0/default\n${size}\n${ROOT}\n\n— gatehouse/0/default ${SIGNATURE}\n`;
const sizes = async () => (await readCheckpointFile(path)).found.map((each) => each.checkpoint.size);

test.each([
  ["with empty lines between them", `${checkpoint(1)}\n${checkpoint(2)}\n\n\n${checkpoint(3)}`],
  ["without", checkpoint(1) + checkpoint(2) + checkpoint(3)],
  ["with Windows line ends", `${checkpoint(1)}\n${checkpoint(2)}${checkpoint(3)}`.replaceAll("\n", "\r\n")],
  ["with two signatures", [1, 2, 3].map((size) => `${checkpoint(size)}— another ${SIGNATURE}\n`).join("\n")],
  ["without the last line end", `${checkpoint(1)}${checkpoint(2)}${checkpoint(3).trimEnd()}`],
])("checkpoints %s", async (_, text) => {
  writeFileSync(path, text);
  expect(await readCheckpointFile(path)).toMatchObject({ broken: 0, problem: undefined });
  expect(await sizes()).toEqual([1, 2, 3]);
});

test("pieces that are not checkpoints are counted, and do not affect others", async () => {
  const torn = "gatehouse/0/default\n77";
  writeFileSync(
    path,
    `${checkpoint(1)}\n${torn}\n\n${checkpoint(2)}${"x".repeat(200_000)}\n\n${checkpoint(3)}${torn}`,
  );
  expect((await readCheckpointFile(path)).broken).toBe(3);
  expect(await sizes()).toEqual([1, 2, 3]);
});

test("a file of more than 64 MiB is read, without its text in memory", async () => {
  const file = openSync(path, "w");
  const other = "x".repeat(60_000);
  for (let n = 0; n < 1_200; n++) writeSync(file, `${n} ${other}\n\n`);
  writeSync(file, checkpoint(5));
  closeSync(file);
  Bun.gc(true);
  const before = process.memoryUsage().heapUsed;
  const read = await readCheckpointFile(path);
  Bun.gc(true);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(16 << 20);
  expect([read.broken, read.found.length]).toEqual([1_200, 1]);
});
