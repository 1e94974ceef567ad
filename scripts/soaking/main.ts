/**
 * `scripts/soak`: kills, checks, prints, and exits with 0 if it found no fault, 1 if it did, or 2 if its arguments
 * were wrong.
 */
import { checkAll } from "./checks/all.ts";
import { endOnInterrupt } from "./interrupted.ts";
import { mainNodes } from "./nodes/main-nodes.ts";
import { parseOptions, USAGE } from "./options.ts";
import type { KilledServer } from "./server.ts";
import { soak } from "./soak.ts";
import { summary } from "./summary.ts";

const TASKS_A_ROUND = 8;
const PROGRESS_EVERY = 10;

async function main(args: readonly string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    console.log(USAGE);
    return 0;
  }
  const options = parseOptions(args, () => Math.floor(Math.random() * 2 ** 32));
  if (typeof options === "string") {
    console.error(`${options}\n\n${USAGE}`);
    return 2;
  }
  const { kills, seconds, seed, binary, nodes } = options;
  if (nodes !== null) return mainNodes({ ...options, nodes });
  let server: KilledServer | null = null;
  // Interrupting the soak also ends its server, and keeps the data directory.
  const unlessInterrupted = endOnInterrupt(async () => server?.abandon());
  const begun = performance.now();
  const elapsed = () => performance.now() - begun;
  console.log(`seed ${seed}, ${kills} kills of ${binary ? "dist/gatehouse" : "the sources"}`);
  let told = 0;
  const soaking = soak({
    ...{ kills, seed, binary },
    prepared: (prepared) => {
      server = prepared;
    },
    tasksARound: TASKS_A_ROUND,
    until: seconds === null ? Number.POSITIVE_INFINITY : begun + seconds * 1000,
    progress(done, world, faults) {
      for (const { check, text } of faults.slice(told))
        console.log(`FAULT  seed ${seed}  kill ${done}  ${check}: ${text}`);
      told = faults.length;
      if (done % PROGRESS_EVERY > 0) return;
      const calls = world.upstreams.receipts.size;
      console.log(
        `${done} kills, ${world.asked.length} tasks, ${calls} calls, ${faults.length} faults, ${Math.round(elapsed() / 1000)} s`,
      );
    },
  });
  const evidence = await soaking.catch(unlessInterrupted);
  checkAll(evidence);
  const { found } = evidence.world.faults;
  for (const { check, round, text } of found.slice(told)) {
    console.log(`FAULT  seed ${seed}  ${round === null ? "at the end" : `kill ${round}`}  ${check}: ${text}`);
  }
  console.log(`\n${summary(evidence, elapsed())}`);
  if (found.length === 0) evidence.server.remove();
  else console.log(`\nThe data directory is kept: ${evidence.server.data}`);
  return found.length === 0 ? 0 : 1;
}

process.exit(await main(process.argv.slice(2)));
