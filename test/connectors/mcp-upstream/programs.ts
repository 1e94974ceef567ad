/** Programs that tests start as separate users. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import {
  openProgramUsers,
  type ProgramUserPool,
  type ProgramUsers,
} from "../../../src/connectors/mcp-upstream/stdio/program-users.ts";
import { faultOf, open } from "./support.ts";

export interface TestDirectory extends Disposable {
  readonly path: string;
}

export function directory(mode = 0o700): TestDirectory {
  const path = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  chmodSync(path, mode);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

const pools: ProgramUserPool[] = [];

/** Removes what a test's pools left behind. */
export async function closeUsers(): Promise<void> {
  for (const pool of pools.splice(0)) await pool.close();
}

export function openUsers(dataDir: string, stdioUser?: string): ProgramUserPool {
  const pool = openProgramUsers({ dataDir, stdioUser, clock: systemClock, log: silentLog });
  if (!pool) throw new Error("programs run as the server's user");
  pools.push(pool);
  return pool;
}

/** The output of a shell that a connector starts. The shell has ended when this resolves. */
export async function wordsOf(script: string, programUsers: ProgramUsers | null): Promise<string> {
  const transport = {
    type: "stdio",
    command: "/bin/sh",
    args: ["-c", `exec >&2; ${script}`],
    env: {},
  } as const;
  await using up = open(transport, { programUsers });
  await faultOf(up.list());
  const { fields } = await up.logs(({ message }) => message === "a connector's program ended");
  return String(fields.output ?? "");
}

/** Another gateway process with a user for a program of connector 1. It has the same data directory, so the same user is next. */
export async function anotherGateway(dataDir: string) {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/another-gateway.ts`, dataDir], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  const user: { uid: number; home: string } = JSON.parse(new TextDecoder().decode(value));
  return {
    ...user,
    async kill() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
