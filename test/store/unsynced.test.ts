/** A disk that fails to keep the log. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { GroupCommit } from "../../src/store/sqlite/group.ts";
import { dataVersionOf, StoreWatch } from "../../src/store/sqlite/watch.ts";
import { WatchedFile } from "../../src/store/sqlite/watched-file.ts";
import { openBench, outcomes } from "./support.ts";

test("a commit that cannot be synced is refused, and nothing is written after it", async () => {
  const bench = openBench();
  bench.writer.leaveSyncs();
  // The kernel refuses to sync a pipe, as it does a failing disk.
  const pipe = join(bench.path, "..", "log");
  Bun.spawnSync(["mkfifo", pipe]);
  const files = {
    database: new WatchedFile(bench.path, "database"),
    log: new WatchedFile(pipe, "log"),
    index: new WatchedFile(`${bench.path}-shm`, "index"),
  };
  const watch = new StoreWatch(files, bench.writer, dataVersionOf(bench.writer));
  const group = new GroupCommit(bench.writer, { guard: watch });
  const steps: string[] = [];
  const write = (k: number, whileRefused = false) =>
    group.submit(
      async (tx) => {
        tx.onRollback(() => void steps.push(`undone ${k}`));
        tx.onCommit(() => void steps.push(`committed ${k}`));
        return await tx.run("INSERT INTO t (k, v) VALUES ($1, 'x')", [k]);
      },
      { whileRefused },
    );
  try {
    expect(watch.mustReopen).toBeNull();
    expect(await outcomes([write(1), write(2)])).toEqual(["StoreUnavailable", "StoreUnavailable"]);
    expect(steps).toEqual(["undone 2", "undone 1"]);
    expect(watch.mustReopen).toBe("unsynced");
    await expect(write(3)).rejects.toThrow("the log could not be written to the disk");
    await expect(write(4, true)).rejects.toThrow("the log could not be written to the disk");
  } finally {
    await group.end();
    bench.close();
    watch.close();
  }
});
