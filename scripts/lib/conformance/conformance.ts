import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../../src/access/secret.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import { serve, tempDir } from "../../../test/support/process.ts";
import { add, NOTHING, ONE_FAILED, type Tally } from "../tally.ts";
import { hasPassed, tallyScenarios } from "./outcome.ts";
import { startProxy } from "./proxy.ts";
import { runSuite, type Suite, type SuiteRun } from "./suite.ts";

/** The last release, and the next release's preview at the newest protocol version that Gatehouse supports. */
const SUITES: readonly Suite[] = [
  { package: "@modelcontextprotocol/conformance", args: ["--suite", "all"] },
  { package: "conformance-next", args: ["--suite", "all", "--spec-version", "2025-11-25"] },
];

/** The program has no fixtures of its own. */
const SERVER = [
  process.execPath,
  "--no-env-file",
  join(import.meta.dir, "..", "..", "..", "test", "mcp", "fixtures", "served", "serve.ts"),
];

/**
 * Runs the official MCP conformance suites against a server with the tools that they require, over HTTP on loopback.
 * Each scenario counts as one check. `say` gets the name of each part before it runs.
 */
export async function checkConformance(say: (text: string) => void): Promise<Tally> {
  const folder = tempDir();
  try {
    const token = createSecret(systemRandom);
    const env = { GATEHOUSE_ADMIN_TOKEN: token };
    const server = await serve(["--data", join(folder.path, "data")], {
      program: SERVER,
      cwd: folder.path,
      env,
    });
    const proxy = startProxy(server.url, token);
    let tally = NOTHING;
    try {
      for (const suite of SUITES) {
        say(`MCP conformance: ${[suite.package, ...suite.args].join(" ")}`);
        const results = join(folder.path, suite.package.replace("/", "-"));
        mkdirSync(results);
        const run = await runSuite(suite, `${proxy.url}/mcp`, results);
        const counted = tallyScenarios(run.exitCode, run.scenarios);
        report(run, counted);
        tally = add(tally, counted);
      }
    } finally {
      await proxy.stop();
      await server.end("SIGTERM");
    }
    if (tally.failed > 0) console.log(server.stderr());
    return tally;
  } catch (error) {
    say("MCP conformance FAILED");
    console.error(error);
    return ONE_FAILED;
  } finally {
    folder.remove();
  }
}

function report({ exitCode, scenarios, output }: SuiteRun, tally: Tally): void {
  for (const { name, checks } of scenarios) {
    for (const { id, status, errorMessage = "" } of checks) {
      if (status === "FAILURE" || status === "WARNING")
        console.log(`${status} ${name}: ${id}: ${errorMessage}`);
    }
  }
  const failed = scenarios.filter((scenario) => !hasPassed(scenario)).map(({ name }) => name);
  if (failed.length > 0) console.log(`FAILED: ${failed.join(", ")}`);
  // A scenario that could not run leaves no result, so show the suite's own output.
  if (tally.failed > failed.length) console.log(`${output}\nexit code ${exitCode ?? "none: killed"}`);
  console.log(`${tally.passed} scenarios passed, ${tally.failed} failed`);
}
