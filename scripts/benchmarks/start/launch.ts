import type { Subprocess } from "bun";
import type { Household } from "../processes/household.ts";
import { freePort } from "../processes/program.ts";
import { proportionalBytes, residentBytes, threadMicros } from "../processes/usage.ts";

const PATIENCE_MS = 30_000;
const POLL_MS = 1;

/** A program that has just answered `/readyz` with 200 for the first time. */
export interface Launch {
  /** Milliseconds since it was started. */
  readonly readyMs: number;
  /** Milliseconds of CPU that all its threads have used until then. */
  readonly cpuMs: number | null;
  memory(): Memory;
  stop(): Promise<void>;
}

/** In bytes. */
export interface Memory {
  readonly resident: number | null;
  /** Shared pages count in proportion to the number of processes that share them. */
  readonly proportional: number | null;
}

/** Starts a program in a folder. `command` receives the port of 127.0.0.1 on which the program is to listen. */
export async function launch(
  household: Household,
  folder: string,
  command: (port: number) => readonly string[],
): Promise<Launch> {
  const port = freePort();
  const begun = performance.now();
  const child = Bun.spawn([...command(port)], {
    cwd: folder,
    // Nothing else from this environment: a provider's key, for example, must not change the measurement.
    env: { PATH: "", HOME: folder, NODE_ENV: "production" },
    stdio: ["ignore", "ignore", "ignore"],
  });
  household.adopt(child);
  const readyMs = await untilReady(child, port, begun);
  const micros = threadMicros(child.pid);
  return {
    readyMs,
    cpuMs: micros === null ? null : micros / 1_000,
    memory: () => ({ resident: residentBytes(child.pid), proportional: proportionalBytes(child.pid) }),
    async stop() {
      await household.end(child);
    },
  };
}

async function untilReady(child: Subprocess, port: number, begun: number): Promise<number> {
  for (;;) {
    const isReady = await answers(port);
    const took = performance.now() - begun;
    if (isReady) return took;
    if (child.exitCode !== null || took > PATIENCE_MS) {
      throw new Error(
        `a program was not ready after ${Math.round(took)} ms (exit code ${child.exitCode ?? "none"})`,
      );
    }
    await Bun.sleep(POLL_MS);
  }
}

async function answers(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, { keepalive: false });
    await response.text();
    return response.status === 200;
  } catch {
    return false; // it does not listen yet
  }
}
