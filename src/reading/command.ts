import { isCompiled } from "../base/compiled.ts";

/** The verbs of the command line that are for this program's own processes, and in no help text. */
export const READ_DOCUMENTS = "read-documents";
export const READ_API_DOCUMENTS = "read-api-documents";

export type ReadingVerb = typeof READ_DOCUMENTS | typeof READ_API_DOCUMENTS;

/**
 * What a reading process is started with. `main`: the program's entry, as its modules see it. The compiled program is its own
 * interpreter; from the sources it is Bun. `ceiling`: bytes of memory that it may take.
 */
export function readingCommand(main: URL, verb: ReadingVerb, ceiling: number): readonly string[] {
  const args = [verb, String(ceiling)];
  return isCompiled(main)
    ? [process.execPath, ...args]
    : [process.execPath, "--no-env-file", Bun.fileURLToPath(main), ...args];
}
