import { existsSync } from "node:fs";
import { GO_SOURCES } from "../../test/ledger/go/program.ts";
import { provide } from "./apt.ts";

/** Tests that need Go, and golang.org/x/mod's sources in Debian's location. */
export const GO_TESTS = "test/ledger/go";
const PACKAGES = ["golang-go", "golang-golang-x-mod-dev"];

/** Ensures that the tests with Go have what they need: see `provide`. */
export function prepareGo(say: (text: string) => void, inCi: boolean): Promise<string | undefined> {
  return provide(PACKAGES, whatIsMissing, say, inCi);
}

function whatIsMissing(): string | undefined {
  if (Bun.which("go") === null) return "there is no go on PATH";
  return existsSync(GO_SOURCES) ? undefined : `there is no ${GO_SOURCES}`;
}
