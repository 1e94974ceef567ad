/** Clocks of servers that differ. */
import { existsSync } from "node:fs";

const MACHINE = process.arch === "arm64" ? "aarch64" : "x86_64";
/** Debian's package libfaketime. */
const LIBRARY = `/usr/lib/${MACHINE}-linux-gnu/faketime/libfaketimeMT.so.1`;
const APART_S = 300;

/** Why clocks cannot be made wrong here, or undefined. */
export function missingClocks(): string | undefined {
  return existsSync(LIBRARY) ? undefined : "there is no libfaketime: apt-get install libfaketime";
}

/** The variables of a server's process that set its clock: the first is slow, the third fast. */
export function wrongClock(index: number): Record<string, string> {
  const seconds = (index - 1) * APART_S;
  return {
    FAKETIME: `${seconds < 0 ? "" : "+"}${seconds}s`,
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    LD_PRELOAD: LIBRARY,
  };
}
