import { isCompiled } from "../base/compiled.ts";

/** Commands for this program's own processes. Not shown in any help text. */
export const READ_DOCUMENTS = "read-documents";
export const READ_API_DOCUMENTS = "read-api-documents";

export type ReadingVerb = typeof READ_DOCUMENTS | typeof READ_API_DOCUMENTS;

/**
 * The command that starts a reading process. `main`: the program's entry, as its modules see it. The compiled program
 * runs itself; from source, Bun runs it. `ceiling`: the maximum bytes of memory that it may use.
 */
export function readingCommand(main: URL, verb: ReadingVerb, ceiling: number): readonly string[] {
  const args = [verb, String(ceiling)];
  return isCompiled(main)
    ? [process.execPath, ...args]
    : [process.execPath, "--no-env-file", Bun.fileURLToPath(main), ...args];
}
