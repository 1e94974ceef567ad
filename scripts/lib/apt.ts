/** Time limit for reading the package lists, and again for installing. */
const LONGEST_STEP_MS = 5 * 60_000;
const TOLD_OF_FAILURE = 2_000;

/**
 * Ensures that what some tests need is installed. Installs it only in CI, which skips nothing; other machines are not
 * changed.
 * @param whatIsMissing names it; undefined if nothing is missing
 * @returns what is missing and what to do about it, or undefined
 */
export async function provide(
  packages: readonly string[],
  whatIsMissing: () => string | undefined,
  say: (text: string) => void,
  inCi: boolean,
): Promise<string | undefined> {
  const missing = whatIsMissing();
  if (missing === undefined) return undefined;
  const install = `apt-get install ${packages.join(" ")}`;
  if (!inCi || process.getuid?.() !== 0 || Bun.which("apt-get") === null) return `${missing}: ${install}`;
  say(`${missing}: ${install}`);
  const started = performance.now();
  const failure =
    (await apt("update")) ?? (await apt("install", "--yes", "--no-install-recommends", ...packages));
  if (failure !== undefined) return `${missing}, and it could not be installed: ${failure}`;
  say(`Installed in ${Math.round((performance.now() - started) / 1_000)} s`);
  return whatIsMissing();
}

/** @returns why it failed, or undefined if it did not */
async function apt(...args: readonly string[]): Promise<string | undefined> {
  const child = Bun.spawn(["apt-get", "--quiet=2", "-o", "DPkg::Lock::Timeout=60", ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: LONGEST_STEP_MS,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (child.exitCode === 0) return undefined;
  const end = `${stdout}${stderr}`.trim().slice(-TOLD_OF_FAILURE);
  return `apt-get ${args[0]} ended with ${child.exitCode ?? "the time limit"}: ${end}`;
}
