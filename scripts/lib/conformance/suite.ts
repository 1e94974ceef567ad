import { join } from "node:path";
import Type, { type Static } from "typebox";
import { validator } from "../../../src/base/schema.ts";
import type { Scenario } from "./outcome.ts";

/** A release of `@modelcontextprotocol/conformance`, and the arguments with which it runs. */
export interface Suite {
  /** The package's name in node_modules. */
  readonly package: string;
  readonly args: readonly string[];
}

export interface SuiteRun {
  /** Null if a signal or the time limit ended it. */
  readonly exitCode: number | null;
  readonly scenarios: readonly Scenario[];
  /** The suite's whole output. */
  readonly output: string;
}

const LONGEST_RUN_MS = 60_000;

const Checks = validator(
  Type.Array(
    Type.Object({
      id: Type.String(),
      status: Type.Enum(["SUCCESS", "FAILURE", "WARNING", "INFO", "SKIPPED"]),
      errorMessage: Type.Optional(Type.String()),
    }),
  ),
);

/** Runs a suite's server scenarios against `url`. `folder` must be empty, and receives their results. */
export async function runSuite(suite: Suite, url: string, folder: string): Promise<SuiteRun> {
  const program = join("node_modules", suite.package, "dist", "index.js");
  const child = Bun.spawn(
    [
      process.execPath,
      "--bun",
      "--no-env-file",
      program,
      "server",
      "--url",
      url,
      ...suite.args,
      "-o",
      folder,
    ],
    {
      // Nothing from this machine's environment, where a proxy might be configured that would sit between suite and
      // server.
      env: { PATH: "", HOME: folder },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: LONGEST_RUN_MS,
      killSignal: "SIGKILL",
    },
  );
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode: child.exitCode, scenarios: await readScenarios(folder), output: stdout + stderr };
}

/** Reads what each scenario leaves in `server-<name>-<time>/checks.json`. */
async function readScenarios(folder: string): Promise<Scenario[]> {
  const paths = await Array.fromAsync(new Bun.Glob("*/checks.json").scan(folder));
  return Promise.all(
    paths.sort().map(async (path) => {
      const name = path.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT[\d-]+Z\/checks\.json$/, "");
      return { name, checks: readChecks(await Bun.file(join(folder, path)).json()) };
    }),
  );
}

/** Empty if this is not what the suite writes; then the scenario has not passed. */
function readChecks(json: unknown): Static<typeof Checks.schema> {
  return Checks.is(json) ? json : [];
}
