import { isCompiled } from "../base/compiled.ts";
import { REQUEST_LIMIT_VARIABLE } from "../limits/request-plan.ts";

/** As many as a process keeps descriptors for. Bun's own limit is 256, and a node runs as many tasks by default. */
const RAISED_LIMIT = 1_024;

/**
 * Lets this process send more HTTP requests at once. Bun reads the limit only when it starts, so the process puts the same
 * program in its own place, with the variable set; its id stays the same. MUST be called before anything else is done. Does
 * nothing where the operator has set the variable, or the system cannot replace a process: fewer requests to models are then
 * in flight at once, and the others wait their turn.
 *
 * @param main the program's entry, as its modules see it
 */
export function raiseRequestLimit(main: URL): void {
  if (process.env[REQUEST_LIMIT_VARIABLE] !== undefined || process.platform === "win32") return;
  const { execPath, execArgv, argv } = process;
  const args = isCompiled(main) ? argv.slice(2) : [...execArgv, ...argv.slice(1)];
  const environment = { ...process.env, [REQUEST_LIMIT_VARIABLE]: String(RAISED_LIMIT) };
  try {
    process.execve?.(execPath, [execPath, ...args], environment);
  } catch (error) {
    process.emitWarning(`requests stay limited to Bun's own number: ${String(error)}`);
  }
}
