/** A PostgreSQL server of the tests' own, which can be killed, frozen and started again. */
import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asServerUser, findPostgres, serverUser } from "./programs.ts";

export interface Cluster {
  /** Of the superuser, in the database `postgres`. */
  readonly url: string;
  /** The process of the running server, of which all others are children. */
  readonly pid: number;
  /** Starts the server, which MUST not be running, and waits until it accepts connections. */
  start(): Promise<void>;
  /** SIGKILL for all of its processes at once, as after a crash of the machine, except that written pages remain. */
  kill(): Promise<void>;
  /** SIGSTOP for all of its processes: connections stay open, and nothing answers. */
  freeze(): void;
  thaw(): void;
  /** Ends the server and removes its files. */
  remove(): Promise<void>;
}

const READY_MS = 30_000;
const POLL_MS = 5;
/**
 * Waits until this process has ended in whatever way, or has removed the file `keep`. Then it ends the server and removes
 * its files. It is not a child of this process, because a test runner that gives up a test kills those.
 */
const KEEPER = `(
  while kill -0 "$2" 2>/dev/null && [ -e "$1/keep" ]; do sleep 0.05; done
  file=$1/data/postmaster.pid
  pid=$(head -n 1 "$file" 2>/dev/null) && kill -CONT "$pid" && kill -QUIT "$pid"
  tries=0
  while [ -e "$file" ] && [ $tries -lt 250 ]; do sleep 0.02; tries=$((tries + 1)); done
  # Its last processes may still write.
  until rm -rf "$1" 2>/dev/null || [ $tries -ge 500 ]; do sleep 0.02; tries=$((tries + 1)); done
) &`;
const SETTINGS = [
  "listen_addresses = '127.0.0.1'",
  "unix_socket_directories = ''",
  "max_connections = 200",
  "shared_buffers = 32MB",
  // The tests kill the server, and never the machine: what was written stays in the page cache.
  "fsync = off",
  "full_page_writes = off",
  "jit = off",
];

/**
 * Creates a server and starts it on an unused port of 127.0.0.1. It ends with this process at the latest.
 * @param settings lines of postgresql.conf that take precedence over those for tests
 */
export async function startCluster(settings: readonly string[] = []): Promise<Cluster> {
  const programs = findPostgres();
  if (programs === undefined) throw new Error("there is no PostgreSQL on this machine");
  const home = mkdtempSync(join(tmpdir(), "gatehouse-postgres-"));
  const data = join(home, "data");
  writeFileSync(join(home, "keep"), "");
  // Detached, so that Ctrl+C in a terminal reaches only the tests, and not what cleans up after them.
  Bun.spawn(["sh", "-c", KEEPER, "sh", home, String(process.pid)], {
    stdio: ["ignore", "ignore", "ignore"],
    detached: true,
  }).unref();
  const port = await unusedPort();
  chmodSync(home, 0o755);
  mkdirSync(data, { mode: 0o700 });
  const user = asServerUser();
  if (user.length > 0) runOrThrow(["chown", serverUser(), home, data]);
  const init = ["-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
  runOrThrow([...user, join(programs, "initdb"), ...init]);
  appendFileSync(
    join(data, "postgresql.conf"),
    `${[...SETTINGS, ...settings, `port = ${port}`].join("\n")}\n`,
  );
  let server: Bun.Subprocess | null = null;

  const cluster: Cluster = {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    get pid() {
      if (server === null) throw new Error("PostgreSQL does not run");
      return server.pid;
    },
    async start() {
      const log = openSync(join(home, "log"), "a");
      const started = Bun.spawn([...user, join(programs, "postgres"), "-D", data], {
        stdin: "ignore",
        stdout: log,
        stderr: log,
      });
      closeSync(log);
      started.unref();
      server = started;
      const deadline = Date.now() + READY_MS;
      while (statusOf(data) !== "ready") {
        if (started.exitCode !== null || Date.now() > deadline) {
          started.kill("SIGKILL");
          throw new Error(
            `PostgreSQL did not start: ${readFileSync(join(home, "log"), "utf8").slice(-2_000)}`,
          );
        }
        await Bun.sleep(POLL_MS);
      }
    },
    async kill() {
      const pids = processes(server);
      for (const pid of pids) process.kill(pid, "SIGKILL");
      await server?.exited;
      while (pids.some(isRunning)) await Bun.sleep(POLL_MS);
      rmSync(join(data, "postmaster.pid"), { force: true });
    },
    freeze() {
      for (const pid of processes(server)) process.kill(pid, "SIGSTOP");
    },
    thaw() {
      for (const pid of processes(server)) process.kill(pid, "SIGCONT");
    },
    async remove() {
      rmSync(join(home, "keep"));
      while (existsSync(home)) await Bun.sleep(POLL_MS);
      await server?.exited;
    },
  };
  await cluster.start();
  return cluster;
}

/** The line of the server's own file that says whether it accepts connections. */
function statusOf(data: string): string | undefined {
  try {
    return readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[7]?.trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** The server's process and its children, which are all of them. */
function processes(server: Bun.Subprocess | null): number[] {
  if (server === null || server.exitCode !== null || server.signalCode !== null) return [];
  const children = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, "utf8");
  return [server.pid, ...children.trim().split(/\s+/).filter(Boolean).map(Number)];
}

/** Not if it has ended and only its parent, which may be busy, has not asked for its result. */
function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

function runOrThrow(command: readonly string[]): void {
  const ran = Bun.spawnSync([...command], { cwd: "/", stdout: "ignore", stderr: "pipe" });
  if (!ran.success) throw new Error(`${command.join(" ")} failed: ${ran.stderr.toString()}`);
}

export function unusedPort(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const server = createServer().once("error", reject);
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
  });
  return promise;
}
