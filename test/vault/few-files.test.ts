/** What becomes of the vault's jobs when no descriptors are left for another thread. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { withFewFiles } from "../support/few-files.ts";

const THREADS = join(import.meta.dir, "..", "..", "src", "vault", "worker-threads.ts");

/** Two threads that answer each job with the number of jobs that they have done. */
const TWO_THREADS = `
import { WorkerThreads } from "${THREADS}";
const program = new URL("data:text/javascript," + encodeURIComponent(\`
  let jobs = -1;
  self.onmessage = ({ data: { id } }) => {
    jobs += 1;
    if (id !== undefined) self.postMessage({ id, ok: true, answer: jobs, cache: null });
  };
\`));
const threads = new WorkerThreads({
  program,
  setup: { index: null },
  threads: 2,
  cacheBytes: 0,
  timeoutMs: 60_000,
  atOnce: 1,
  waiting: { perWorkspace: 100, total: 100 },
  idleMs: 60_000,
});
const ask = () => threads.do("compact", { scopeId: 1, isQuiet: true }, { workspaceId: 1 }).catch(({ code }) => code);
const askMany = (count) => Promise.all(Array.from({ length: count }, ask));
reserve.resize(8);
`;

test("the jobs of a thread that cannot be started are done by the one that runs", async () => {
  const { reported, code } = await withFewFiles(`${TWO_THREADS}
    report(await ask());
    takeAll();
    report(await askMany(5));
    report(await askMany(5));
    giveBack(64);
    threads.stop();
  `);
  expect(reported).toEqual([1, [2, 3, 4, 5, 6], [7, 8, 9, 10, 11]]);
  expect(code).toBe(0);
});

test("if no thread runs, each job is refused, and the next one tries again", async () => {
  const { reported, code } = await withFewFiles(`${TWO_THREADS}
    takeAll();
    report(await askMany(3));
    giveBack(64);
    report(await ask());
    threads.stop();
  `);
  expect(reported).toEqual([Array(3).fill("rate_limited"), 1]);
  expect(code).toBe(0);
});
