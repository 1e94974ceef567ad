/** A server whose log cannot be written, and faults that no part of the program catches. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fromSources, run, type ServerProcess, serve, tempDir } from "../support/process.ts";
import { until } from "../tasks/support.ts";

setDefaultTimeout(60_000);

let directory: ReturnType<typeof tempDir>;
let data: string;

beforeEach(() => {
  directory = tempDir();
  data = join(directory.path, "gatehouse-data");
});
afterEach(() => directory.remove());

/** Makes the server log a warning by exceeding its limit of requests. */
async function makeItLog(url: string): Promise<void> {
  const token = readFileSync(join(data, "admin.token"), "utf8").trim();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const limits = { requests_per_minute: 1 };
  await fetch(`${url}/v1/workspace`, { method: "PATCH", headers, body: JSON.stringify({ limits }) });
  for (let i = 0; i < 3; i++) expect((await fetch(`${url}/v1/agents`, { headers })).status).toBe(200);
}

/** Starts a server and waits for its address without reading its log. */
async function serveUnread(shell: string) {
  const program = await fromSources();
  const command = [
    "/bin/sh",
    "-c",
    shell,
    "sh",
    ...program,
    "serve",
    "--listen",
    "127.0.0.1:0",
    "--data",
    data,
  ];
  const env = { PATH: "", HOME: directory.path };
  const child = Bun.spawn(command, { cwd: directory.path, env, stdio: ["ignore", "ignore", "pipe"] });
  const runtime = join(data, "server.json");
  await until(() => existsSync(runtime) || child.exitCode !== null);
  const { url } = JSON.parse(readFileSync(runtime, "utf8")) as { url: string };
  return { child, url };
}

test("a server continues when the reader of its log has gone", async () => {
  const { child, url } = await serveUnread('exec "$@"');
  await child.stderr.cancel();
  await makeItLog(url);
  expect((await fetch(`${url}/livez`)).status).toBe(200);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});

test.skipIf(!existsSync("/dev/full"))("a server continues when its log's disk is full", async () => {
  const { child, url } = await serveUnread('exec "$@" 2>/dev/full');
  await makeItLog(url);
  expect((await fetch(`${url}/livez`)).status).toBe(200);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});

test.skipIf(!existsSync("/dev/full"))(
  "a command whose output cannot be written ends with 1 and one line",
  async () => {
    const program = ["/bin/sh", "-c", 'exec "$@" >/dev/full', "sh", ...(await fromSources())];
    const { code, stderr } = await run(["config", "show"], { cwd: directory.path, program });
    expect([code, stderr]).toEqual([1, "gatehouse: standard output cannot be written (ENOSPC)\n"]);
  },
);

/** Starts a server with two faults built in, one for each signal. */
async function serveFaulty(): Promise<ServerProcess> {
  const faults = join(directory.path, "faults.js");
  writeFileSync(
    faults,
    `process.on("SIGUSR1", () => void Promise.reject(new Error("nobody waits for this")));
     process.on("SIGUSR2", () => setTimeout(() => { throw new Error("nobody catches this"); }));`,
  );
  const [bun = "", ...rest] = await fromSources();
  return serve([], { cwd: directory.path, program: [bun, "--preload", faults, ...rest] });
}

const logged = (server: ServerProcess, message: string) =>
  server
    .stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
    .filter((line) => line.message.startsWith(message));

test("a rejected promise that nobody awaits is logged, and the server continues", async () => {
  const server = await serveFaulty();
  process.kill(server.pid, "SIGUSR1");
  await until(() => logged(server, "a promise failed and nobody waited for it").length === 1);
  expect((await fetch(`${server.url}/livez`)).status).toBe(200);
  expect(await server.end("SIGTERM")).toBe(0);
});

test("an uncaught error closes the store in order, and ends the server with 1", async () => {
  const server = await serveFaulty();
  process.kill(server.pid, "SIGUSR2");
  await until(() => !existsSync(`/proc/${server.pid}/fd/0`));
  expect(await server.end("SIGTERM")).toBe(1);
  expect(logged(server, "an error was not caught")).toMatchObject([
    { level: "error", error: { message: "nobody catches this" } },
  ]);
  // The write-ahead log was written back, and no file is left over.
  expect(existsSync(join(data, "gatehouse.db-wal"))).toBe(false);
  expect(existsSync(join(data, "server.json"))).toBe(false);
});
