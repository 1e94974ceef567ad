import { PROGRAMS } from "../../test/ledger/verify/bundle/archive/readers/programs.ts";
import { provide } from "./apt.ts";

/** Tests of bundles that other programs unpack. */
export const ZIP_READER_TESTS = "test/ledger/verify/bundle/archive/readers";
const PACKAGES = ["unzip", "python3", "default-jdk-headless"];

/** Ensures that the programs that unpack bundles in tests are installed: see `provide`. */
export function prepareZipReaders(say: (text: string) => void, inCi: boolean): Promise<string | undefined> {
  return provide(PACKAGES, whatIsMissing, say, inCi);
}

function whatIsMissing(): string | undefined {
  const missing = Object.values(PROGRAMS).filter((program) => Bun.which(program) === null);
  return missing.length === 0 ? undefined : `there is no ${missing.join(" and no ")} on PATH`;
}
