import type { Command } from "commander";
import { checkConfig } from "../../config/check.ts";
import { type ConfigOptions, command, resolveConfig, sources } from "../options.ts";
import { print, printJson } from "../output.ts";
import { checkCheckpointFile } from "./checkpoint-file.ts";
import { checkDatabase } from "./database.ts";
import { checkDirectory } from "./directory.ts";
import { type Finding, fail, ok, statusOf } from "./finding.ts";
import { checkMachine } from "./machine.ts";
import { checkModels } from "./models.ts";
import { checkServer } from "./server.ts";

interface DoctorOptions extends ConfigOptions {
  readonly json?: boolean;
}

const FAILED = 1;

const HELP = `
Checks the configuration, the data directory and its disk, the database and its keys or the store that servers share,
the running server, the models of each tier, and the limits of the machine. Changes nothing, calls no model, and may
run beside a server.

Each line begins with ok, warn or fail, and what is not ok is followed by what to do. The exit code is 1 if a check fails.`;

/** `doctor`: what is wrong with this installation, or soon will be. */
export function doctorCommand(): Command {
  return command("doctor", "check this installation, and say what to do about each problem")
    .option("--listen <host:port>", "as for serve")
    .option("--json", "print JSON")
    .addHelpText("after", HELP)
    .action(doctor);
}

async function doctor({ json = false, ...options }: DoctorOptions): Promise<void> {
  const findings = [...(await examineAll(options)), ...checkMachine()];
  const status = statusOf(findings);
  if (json) printJson({ status, checks: findings });
  else printFindings(findings);
  if (status === "fail") process.exitCode = FAILED;
}

async function examineAll(options: ConfigOptions): Promise<Finding[]> {
  const { ok: isValid, messages } = checkConfig(sources(options));
  if (!isValid) {
    return messages.map((message) =>
      fail("configuration", message, "correct it; `gatehouse config reference` lists all settings"),
    );
  }
  const { config } = await resolveConfig(options);
  const { store, dataDir } = config;
  return [
    ...messages.map((message) => ok("configuration", message)),
    ...checkDirectory(dataDir),
    ...(store
      ? await (await import("./store.ts")).checkStore(store, config.masterKey)
      : checkDatabase(config)),
    ...checkCheckpointFile(config.ledger.checkpointFile),
    ...(await checkServer(config)),
    ...(await checkModels(config)),
  ];
}

function printFindings(findings: readonly Finding[]): void {
  const width = Math.max(...findings.map(({ check }) => check.length));
  for (const { check, status, message, hint } of findings) {
    print(`${status.padEnd(4)}  ${check.padEnd(width)}  ${message}`);
    if (hint !== undefined) print(`${" ".repeat(width + 8)}${hint}`);
  }
  const count = (status: Finding["status"]) => findings.filter((finding) => finding.status === status).length;
  print(`\n${count("ok")} ok, ${count("warn")} warnings, ${count("fail")} failed`);
}
