import { isCompiled } from "../../base/compiled.ts";

/** The verb of the command line that is for this program's own processes, and in no help text. */
export const READ_DOCUMENTS = "read-documents";

/**
 * What a process that reads documents is started with. `main`: the program's entry, as its modules see it. The compiled
 * program is its own interpreter; from the sources it is Bun.
 */
export function readingCommand(main: URL, ceiling: number): readonly string[] {
  const args = [READ_DOCUMENTS, String(ceiling)];
  return isCompiled(main)
    ? [process.execPath, ...args]
    : [process.execPath, "--no-env-file", Bun.fileURLToPath(main), ...args];
}
