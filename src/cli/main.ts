import { CommanderError } from "commander";
import { OperatorError } from "../base/errors.ts";
import { redact } from "../base/log.ts";
import { environmentFault } from "./environment-fault.ts";
import { hideMemory } from "./hide-memory.ts";
import { allowFailingOutput } from "./output.ts";
import { createProgram } from "./program.ts";

/** Exit codes (contract, section 9): 0 done, 1 failed, 2 wrong usage, 3 could not be verified. */
const FAILED = 1;
const WRONG_USAGE = 2;

/** Runs a command line and sets the process's exit code. Never rejects. */
export async function main(argv: readonly string[]): Promise<void> {
  // Only the owner may read files that the program writes.
  process.umask(0o077);
  // For all commands: the environment may contain the master key, and commands may start connectors' programs.
  hideMemory();
  allowFailingOutput();
  try {
    const program = await createProgram(argv);
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    process.exitCode = report(error);
  }
}

function report(error: unknown): number {
  // Commander has already printed its message. Help and version exit with 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  const fault = error instanceof OperatorError ? error : environmentFault(error);
  if (fault) {
    print(`gatehouse: ${fault.message}`);
    if (fault.hint !== undefined) print(`  ${fault.hint}`);
    return fault.exitCode;
  }
  print(`gatehouse: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  return FAILED;
}

function print(line: string): void {
  process.stderr.write(`${redact(line)}\n`);
}
