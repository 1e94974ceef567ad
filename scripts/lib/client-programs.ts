import { mkdirSync, writeFileSync } from "node:fs";
import { CLIENT_PROGRAMS, PROGRAMS_HOME } from "../../test/clients/programs/programs.ts";

/** Tests of command-line programs that call models. */
export const CLIENT_PROGRAM_TESTS = "test/clients/programs";

/**
 * Ensures that the programs are there. Together they take 770 MB, so only CI fetches them, from the npm registry; other
 * machines skip their tests.
 * @returns what is missing and what to do about it, or undefined
 */
export async function prepareClientPrograms(
  say: (text: string) => void,
  inCi: boolean,
): Promise<string | undefined> {
  const missing = CLIENT_PROGRAMS.filter(({ path }) => Bun.which(path) === null);
  if (missing.length === 0) return undefined;
  const names = missing.map(({ name }) => name).join(" and ");
  const packages = CLIENT_PROGRAMS.map(({ name, spec }) => `${name}@npm:${spec}`);
  const command = ["bun", "add", "--exact", ...packages];
  const told = `there is no ${names} in ${PROGRAMS_HOME}`;
  if (!inCi) return `${told}: ${command.join(" ")}`;
  say(`${told}: fetching from npm`);
  mkdirSync(PROGRAMS_HOME, { recursive: true });
  writeFileSync(`${PROGRAMS_HOME}/package.json`, "{}\n");
  const added = Bun.spawnSync([process.execPath, ...command.slice(1)], {
    cwd: PROGRAMS_HOME,
    stderr: "pipe",
    timeout: 5 * 60_000,
  });
  return added.success ? undefined : `${told}, and they could not be fetched: ${added.stderr.toString()}`;
}
