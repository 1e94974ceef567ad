import { isCompiled } from "../base/compiled.ts";
import { REQUEST_LIMIT_VARIABLE } from "../limits/request-plan.ts";

/**
 * As many as the process reserves descriptors for. Bun's own limit is 256, which is also the default number of
 * running tasks of a node.
 */
const RAISED_LIMIT = 1_024;

/**
 * Lets this process send more HTTP requests at once. Bun reads the limit only at start, so the process replaces
 * itself with the same program and the variable set; its process id stays the same. MUST be called before anything
 * else. Does nothing if the operator has set the variable, or if the system cannot replace a process. In that case,
 * fewer requests to models are in flight at once and the others wait.
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
    process.emitWarning(`concurrent requests stay limited to Bun's default: ${String(error)}`);
  }
}
