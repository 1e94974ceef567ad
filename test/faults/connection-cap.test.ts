/** More clients than the server has descriptors for: what it keeps, refuses and reports. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { readEvents } from "../support/events.ts";
import { run, tempDir } from "../support/process.ts";
import { gate, until } from "../tasks/support.ts";
import { Crowd, type LimitedServer, serveWithOpenFiles, withOpenFiles } from "./open-files-support.ts";

setDefaultTimeout(120_000);

const OPEN_FILES = 256;
/** The program itself uses 3/8 of the descriptors. */
const CONNECTIONS = 160;
const CLIENTS = 400;

let server: LimitedServer | undefined;
const crowd = new Crowd();

afterEach(async () => {
  crowd.leave();
  await server?.stop();
  server = undefined;
});

/** The log lines whose message matches. */
function logged(text: RegExp): Record<string, unknown>[] {
  const lines = server?.process.stderr().split("\n") ?? [];
  return lines
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
    .filter(({ message }) => text.test(message));
}

test("a server with too few descriptors does not start, and says in one line what to do", async () => {
  const { path, remove } = tempDir();
  try {
    const program = await withOpenFiles(100);
    const { code, stderr } = await run(["serve", "--listen", "127.0.0.1:0"], { cwd: path, program });
    expect(code).toBe(1);
    expect(stderr).toContain(
      "gatehouse: the limit on open files is 100, too low for a server\n  raise it to 4096",
    );
    expect(stderr).not.toContain("    at ");
  } finally {
    remove();
  }
});

test("a start logs how many connections are possible, and warns if they are few", async () => {
  server = await serveWithOpenFiles(OPEN_FILES);
  expect(logged(/limit on open files/)).toMatchObject([
    { level: "warn", open_files: OPEN_FILES, connections: CONNECTIONS, streams: 120, reserve: 16 },
  ]);
  await server.stop();
  server = await serveWithOpenFiles(8_192);
  expect(logged(/limit on open files/)).toMatchObject([{ level: "info", connections: 8_192 - 1_024 }]);
});

test("above the cap, connections without a call are closed, while open calls and streams continue", async () => {
  server = await serveWithOpenFiles(OPEN_FILES);
  const answer = gate();
  server.fake.script("talks", { chunks: ["half, ", "whole"], gate: answer.opened });
  const dispatched = await server.call("POST", "/v1/tasks?stream=true", { agent: "helper", prompt: "hi" });
  const events = readEvents(dispatched);
  expect((await events.next()).value).toMatchObject({ event: "task.created" });
  const { fake, port } = server;
  await until(() => fake.requests.length === 1);
  const metrics = async () => (await (await server?.call("GET", "/metrics"))?.text()) ?? "";

  await crowd.join(port, CLIENTS, "GET / HTTP/1.1\r\nHost: gatehouse\r\n");
  await until(() => crowd.ended > 0);
  // As many connections as there is room for stay open.
  await until(async () => /^gatehouse_connections_closed_total [1-9]/m.test(await metrics()));
  await until(() => server?.openFiles() !== OPEN_FILES);
  expect(crowd.open).toBeGreaterThan(0);
  expect(await metrics()).toMatch(new RegExp(`^gatehouse_connections_limit ${CONNECTIONS}$`, "m"));
  expect(logged(/^connections without a call were closed/)).toHaveLength(1);

  answer.open();
  const rest = (await Array.fromAsync(events)).map(({ event }) => event);
  expect(rest.at(-1)).toBe("task.finished");
});

test("above the cap, calls are told to retry and stops are accepted; everything is served once clients have left", async () => {
  server = await serveWithOpenFiles(OPEN_FILES);
  const { port, token, call } = server;
  const head = `POST /v1/tasks HTTP/1.1\r\nHost: gatehouse\r\nAuthorization: Bearer ${token}\r\n`;
  await crowd.join(port, CLIENTS, `${head}Content-Type: application/json\r\nContent-Length: 999\r\n\r\n{`);
  // Clients that found no room were answered and disconnected.
  await until(() => crowd.open <= CONNECTIONS);
  await until(async () => (await call("GET", "/v1/agents")).status === 429);
  const refused = await call("GET", "/v1/agents");
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(refused.headers.get("connection")).toBe("close");
  expect(await refused.json()).toMatchObject({
    code: "rate_limited",
    request_id: expect.stringMatching(/^req_/),
  });
  expect((await call("GET", "/livez")).status).toBe(200);
  expect((await call("GET", "/readyz")).status).toBe(200);
  expect((await call("POST", "/v1/agents/helper/stop")).status).toBe(200);
  expect(await (await call("GET", "/metrics")).text()).toMatch(/^gatehouse_calls_without_room_total [1-9]/m);
  crowd.leave();
  await until(async () => (await call("GET", "/v1/agents")).status === 200);
});

test("streams get only a share of the connections, which leaves room for calls", async () => {
  server = await serveWithOpenFiles(OPEN_FILES);
  const { call } = server;
  const opened: Response[] = [];
  for (;;) {
    const response = await call("GET", "/v1/events");
    if (response.status === 429) {
      expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
      break;
    }
    expect(response.status).toBe(200);
    opened.push(response);
  }
  // One workspace may have half of the connections.
  expect(opened).toHaveLength(CONNECTIONS / 2);
  expect((await call("GET", "/v1/agents")).status).toBe(200);
  await Promise.all(opened.map((response) => response.body?.cancel()));
});
