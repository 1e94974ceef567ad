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

/** Runs one command line and sets the process's exit code. Never rejects. */
export async function main(argv: readonly string[]): Promise<void> {
  // Whatever the program writes is its owner's alone.
  process.umask(0o077);
  // Verbs as well: their environment may hold the master key, and they may start connectors' programs themselves.
  hideMemory();
  allowFailingOutput();
  try {
    await createProgram().parseAsync(argv, { from: "user" });
  } catch (error) {
    process.exitCode = report(error);
  }
}

function report(error: unknown): number {
  // Commander has printed its own message; help and version end with 0.
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
