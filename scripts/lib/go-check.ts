import { existsSync } from "node:fs";
import { GO_SOURCES } from "../../test/ledger/go/program.ts";
import { provide } from "./apt.ts";

/** Tests that need Go, and the sources of golang.org/x/mod where Debian puts them. */
export const GO_TESTS = "test/ledger/go";
const PACKAGES = ["golang-go", "golang-golang-x-mod-dev"];

/** Sees that there is what the tests with Go need: see `provide`. */
export function prepareGo(say: (text: string) => void, inCi: boolean): Promise<string | undefined> {
  return provide(PACKAGES, whatIsMissing, say, inCi);
}

function whatIsMissing(): string | undefined {
  if (Bun.which("go") === null) return "there is no go on PATH";
  return existsSync(GO_SOURCES) ? undefined : `there is no ${GO_SOURCES}`;
}
