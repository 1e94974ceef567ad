/**
 * Runs every check of the repository and counts them. `scripts/test` calls this once Bun and the packages are
 * installed. Arguments narrow the run to `bun test` with those arguments. A failed part does not end the run.
 */
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SERVER } from "../../test/support/postgres/database.ts";
import { ENGINE } from "../../test/support/postgres/engine.ts";
import { BROWSER_TESTS, prepareBrowser } from "./browser-check.ts";
import { CLIENT_PROGRAM_TESTS, prepareClientPrograms } from "./client-programs.ts";
import { checkConformance } from "./conformance/conformance.ts";
import { GO_TESTS, prepareGo } from "./go-check.ts";
import { preparePostgres } from "./postgres-check.ts";
import { prepareShells } from "./shells-check.ts";
import {
  add,
  isGood,
  NOTHING,
  ONE_FAILED,
  ONE_PASSED,
  ONE_SKIPPED,
  summary,
  type Tally,
  tallyTests,
  withoutSkips,
} from "./tally.ts";
import { prepareZipReaders, ZIP_READER_TESTS } from "./zip-readers-check.ts";

/** Tests of the built program, which need dist/gatehouse. */
const PROGRAM_TESTS = ["test/binary", "test/faults"];
/** Tests of several servers. They mostly wait, so they run beside everything else, and may wait for longer. */
const NODE_TESTS = "test/nodes";
const NODE_TEST_TIMEOUT_MS = 60_000;
/** Tests that start many processes. They run after `NODE_TESTS`. */
const COMMAND_TESTS = "test/cli";
/**
 * Rooms whose tests run a second time, with servers whose store is in PostgreSQL. Tests of the file itself keep SQLite:
 * they say so by `isOnFiles`. `TEST_STORE=postgres bun test test/<room>` runs any other room that way.
 */
const POSTGRES_ROOMS = ["access", "gate", "limits", "mcp", "notify", "rights"].map(
  (room) => `./test/${room}/`,
);
/** Tests that run after the program's, so that all parts take about as long. */
const LATER_TESTS = ["test/tasks", "test/mcp"];
/**
 * Tests that need a program that not every machine has. CI installs it; other machines skip these tests if it is
 * missing.
 */
const OUTSIDE = [
  { name: "the ledger's proofs, checked by Go", folder: GO_TESTS, prepare: prepareGo },
  { name: "bundles, unpacked by other programs", folder: ZIP_READER_TESTS, prepare: prepareZipReaders },
  { name: "command-line agents", folder: CLIENT_PROGRAM_TESTS, prepare: prepareClientPrograms },
  { name: "pages, in a real browser", folder: BROWSER_TESTS, prepare: prepareBrowser },
] as const;
const LONGEST_PART_MS = 30 * 60_000;
/** The limit for one test, which Bun reads only from the command line. */
const TEST_TIMEOUT_MS = 20_000;
const OLDEST_NODE = 20;

const bun = process.execPath;
const inCi = process.env.CI === "true";

function say(text: string): void {
  console.log(`\n== ${text}`);
}

/** Runs a command and shows its output, or writes it to a file. Null if a signal or the time limit ended it. */
async function run(
  command: readonly string[],
  {
    output,
    env,
  }: { readonly output?: string | undefined; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<number | null> {
  const shown = output === undefined ? "inherit" : openSync(output, "w");
  const child = Bun.spawn([...command], {
    // Given explicitly: otherwise it would be this process's environment as it was at the start.
    env: { ...process.env, ...env },
    stdin: "ignore",
    stdout: shown,
    stderr: shown,
    timeout: LONGEST_PART_MS,
    killSignal: "SIGKILL",
  });
  await child.exited;
  if (typeof shown === "number") closeSync(shown);
  return child.exitCode;
}

async function runCommand(name: string, command: readonly string[]): Promise<Tally> {
  say(name);
  if ((await run(command)) === 0) return ONE_PASSED;
  say(`${name} FAILED`);
  return ONE_FAILED;
}

/** `isAside` means that other parts run at the same time, so the output is shown when this one has ended. */
async function runTests(
  name: string,
  args: readonly string[],
  {
    isAside = false,
    timeoutMs = TEST_TIMEOUT_MS,
    env = {},
  }: {
    readonly isAside?: boolean;
    readonly timeoutMs?: number;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<Tally> {
  if (!isAside) say(name);
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  try {
    const path = join(folder, "report.xml");
    const output = isAside ? join(folder, "output") : undefined;
    const reporter = ["--reporter=junit", `--reporter-outfile=${path}`];
    // So that the end of CI's log shows what failed, not thousands of lines of what passed.
    if (inCi) reporter.push("--only-failures");
    const exitCode = await run(
      [bun, "--no-env-file", "test", `--timeout=${timeoutMs}`, ...reporter, ...args],
      { output, env },
    );
    if (output !== undefined) {
      say(name);
      process.stdout.write(readFileSync(output));
    }
    const report = Bun.file(path);
    const tally = tallyTests(exitCode, (await report.exists()) ? await report.text() : undefined);
    if (tally.failed > 0) say(`${name} FAILED (exit code ${exitCode ?? "none: killed"})`);
    return tally;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function hasTests(folder: string): boolean {
  if (!existsSync(folder)) return false;
  for (const _ of new Bun.Glob("**/*.test.ts").scanSync(folder)) return true;
  return false;
}

/** Proves that the agents' framework runs without Bun. */
async function runOnNode(): Promise<Tally> {
  const node = Bun.which("node");
  if (node === null) return skip("agents on Node", "there is no node on PATH");
  const version = Bun.spawnSync([node, "--version"]).stdout.toString().trim();
  if (Number.parseInt(version.slice(1), 10) < OLDEST_NODE) {
    return skip("agents on Node", `node is ${version}, the framework needs ${OLDEST_NODE}`);
  }
  return runCommand(`agents on Node ${version}`, [node, "scripts/lib/agents-on-node.mjs"]);
}

function skip(name: string, reason: string): Tally {
  say(`${name} SKIPPED: ${reason}`);
  return ONE_SKIPPED;
}

/** Runs everything that needs something from outside, one part after another, alongside the rest. */
async function checkOutside(): Promise<Tally> {
  let tally = NOTHING;
  for (const { name, folder, prepare } of OUTSIDE) {
    const missing = await prepare(say, inCi);
    const checked =
      missing === undefined ? await runTests(name, [`./${folder}/`], { isAside: true }) : skip(name, missing);
    tally = add(tally, checked);
  }
  return tally;
}

/** The argument that excludes a folder's tests. */
function without(folder: string): string {
  return `--path-ignore-patterns=${folder}/**`;
}

/** One of the tools in node_modules, run by this Bun, so that none needs Node. */
function tool(path: string, ...args: readonly string[]): readonly string[] {
  return [bun, "--bun", join("node_modules", path), ...args];
}

/** Builds the program and then runs the parts that need it, but never on an earlier build's results. */
async function buildThen(parts: () => Promise<Tally>): Promise<Tally> {
  const built = await runCommand("build", ["scripts/build"]);
  if (built.failed === 0) return add(built, await parts());
  say("The tests of what is built are NOT RUN");
  return built;
}

async function checkAll(): Promise<Tally> {
  const elsewhere = [
    NODE_TESTS,
    COMMAND_TESTS,
    ...PROGRAM_TESTS,
    ...LATER_TESTS,
    ...OUTSIDE.map(({ folder }) => folder),
  ].map(without);
  let tally = await runCommand("types", tool("typescript/bin/tsc", "--noEmit"));
  tally = add(
    tally,
    await runCommand(
      "types of the console",
      tool("typescript/bin/tsc", "--noEmit", "--project", "src/console"),
    ),
  );
  tally = add(
    tally,
    await runCommand("lint", tool("@biomejs/biome/bin/biome", "check", "--error-on-warnings", ".")),
  );
  tally = add(tally, await runCommand("unused code", tool("knip/bin/knip.js", "--no-progress")));
  // Before the parts that run beside each other, since only one can install packages at a time.
  const shells = await prepareShells(say, inCi);
  if (shells !== undefined) say(`completions of some shells SKIPPED: ${shells}`);
  const nodes = checkNodes();
  // At the same time, because each takes minutes: the tests that wait for a browser or other processes, and the rest.
  const beside = checkOutside()
    .then(async (checked) => add(checked, await buildThen(checkProgram)))
    .then(async (checked) => add(checked, await checkLater()));
  tally = add(tally, await runTests("tests", elsewhere));
  return add(add(tally, await beside), await nodes);
}

/** Without a server, the tests that need one count as skipped. */
async function withPostgres(checks: () => Promise<Tally>): Promise<Tally> {
  const server = await preparePostgres(say, inCi);
  if (typeof server === "string") say(`tests with PostgreSQL SKIPPED: ${server}`);
  try {
    return await checks();
  } finally {
    if (typeof server === "object") await server.remove();
  }
}

/** What mostly waits for other processes. */
async function checkNodes(): Promise<Tally> {
  const slowly = { isAside: true, timeoutMs: NODE_TEST_TIMEOUT_MS };
  let tally = await runTests("several servers", [`./${NODE_TESTS}/`], slowly);
  tally = add(tally, await runTests("the command line", [`./${COMMAND_TESTS}/`], slowly));
  if (!process.env[SERVER]) return add(tally, skip("one server on PostgreSQL", "there is no server"));
  const env = { [ENGINE]: "postgres" };
  return add(tally, await runTests("one server on PostgreSQL", POSTGRES_ROOMS, { ...slowly, env }));
}

async function checkLater(): Promise<Tally> {
  let tally = NOTHING;
  for (const folder of LATER_TESTS)
    tally = add(tally, await runTests(folder, [`./${folder}/`], { isAside: true }));
  return tally;
}

async function checkProgram(): Promise<Tally> {
  let tally = NOTHING;
  for (const folder of PROGRAM_TESTS) {
    if (hasTests(folder)) tally = add(tally, await runTests(folder, [`./${folder}/`], { isAside: true }));
  }
  tally = add(tally, await checkConformance(say));
  return add(tally, await runOnNode());
}

async function checkSome(args: readonly string[]): Promise<Tally> {
  let skipped = NOTHING;
  const missing: string[] = [];
  for (const { name, folder, prepare } of OUTSIDE) {
    const isMeant = args.some((arg) => arg.includes(folder) || folder.startsWith(arg.replace(/^\.\//, "")));
    const reason = isMeant ? await prepare(say, inCi) : undefined;
    if (reason === undefined) continue;
    skipped = add(skipped, skip(name, reason));
    missing.push(without(folder));
  }
  const runThem = () => runTests("tests", [...missing, ...args]);
  const needsProgram = args.some((arg) => PROGRAM_TESTS.some((folder) => arg.includes(folder)));
  return add(skipped, needsProgram ? await buildThen(runThem) : await runThem());
}

const args = process.argv.slice(2);
const counted = args.length === 0 ? await withPostgres(checkAll) : await checkSome(args);
const tally = inCi ? withoutSkips(counted) : counted;
console.log();
if (inCi && counted.skipped > 0)
  console.log(`CI skips nothing: ${counted.skipped} skipped are counted as failed.`);
console.log(summary(tally));
process.exitCode = isGood(tally) ? 0 : 1;
