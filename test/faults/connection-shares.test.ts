/**
 * One workspace holds as many connections as it can get, at a low limit of open files. The other workspaces are still
 * served.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { dirname } from "node:path";
import { BINARY, run } from "../support/process.ts";
import { until } from "../tasks/support.ts";
import { Crowd, type LimitedServer, serveWithOpenFiles } from "./open-files-support.ts";

setDefaultTimeout(120_000);

const OPEN_FILES = 1_024;
/**
 * More connections than all clients together may have (640), opened in groups: a server flooded at once may close
 * some that it would otherwise have served.
 */
const GROUPS = 24;
const GROUP = 40;
const HELLO = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};

let server: LimitedServer;
let crowd: Crowd;
/** A token of an agent in the workspace `default`. */
let hog: string;
/** A token of the workspace `other`. */
let other: string;

async function token(args: readonly string[]): Promise<string> {
  const cwd = dirname(server.data);
  const created = await run(["token", "create", "--name", "t", ...args], { cwd, program: BINARY });
  const [secret] = /gth_\w+/.exec(created.stdout) ?? [];
  if (secret === undefined) throw new Error(created.stderr);
  return secret;
}

beforeEach(async () => {
  crowd = new Crowd();
  server = await serveWithOpenFiles(OPEN_FILES, BINARY);
  await run(["workspace", "create", "other"], { cwd: dirname(server.data), program: BINARY });
  hog = await token(["--agent", "helper"]);
  other = await token(["--workspace", "other", "--scope", "admin"]);
});
afterEach(async () => {
  crowd.leave();
  await server.stop();
});

/** Makes one request for the other workspace, on a connection of its own. */
function ask(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
  return fetch(server.process.url + path, {
    method,
    keepalive: false,
    headers: {
      authorization: `Bearer ${other}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function served(response: Promise<Response>): Promise<Response> {
  const answer = await response;
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  return answer;
}

type Part = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

/** Reads a stream for as long as it is open. */
function follow(response: Response) {
  const reader = response.body?.getReader();
  const part = (): Promise<Part> => reader?.read() ?? Promise.resolve({ done: true, value: undefined });
  return { part, leave: () => reader?.cancel() };
}

/**
 * Checks that the other workspace's REST calls, MCP calls and streams are served at the first attempt.
 * @param lasts whether to wait until each stream has received its next keep-alive
 */
async function everythingWorks(lasts: boolean): Promise<void> {
  await served(ask("GET", "/v1/agents"));
  await served(ask("POST", "/v1/agents", { name: "x", owner: "o", memory_scope: "/" }));
  const hello = await served(ask("POST", "/mcp", HELLO));
  await hello.text();
  const session = { "mcp-session-id": hello.headers.get("mcp-session-id") ?? "" };
  const streams = await Promise.all([
    served(ask("GET", "/mcp", undefined, session)),
    served(ask("GET", "/mcp/sse")),
    served(ask("GET", "/v1/events")),
  ]);
  const followed = streams.map(follow);
  for (const { part } of followed) expect((await part()).done).toBe(false);
  for (let call = 2; call < 12; call++) {
    await served(ask("POST", "/mcp", { jsonrpc: "2.0", id: call, method: "tools/list" }, session));
    await served(ask("GET", "/v1/agents"));
  }
  if (lasts) for (const { part } of followed) expect((await part()).done).toBe(false);
  await Promise.all(followed.map(({ leave }) => leave()));
  await served(ask("DELETE", "/v1/agents/x"));
}

const head = (request: string, headers: readonly string[]): string =>
  `${[request, "Host: 127.0.0.1", `Authorization: Bearer ${hog}`, ...headers].join("\r\n")}\r\n\r\n`;

describe.each([
  ["quiet MCP streams", () => head("GET /mcp/sse HTTP/1.1", ["Accept: text/event-stream"])],
  ["quiet streams of events", () => head("GET /v1/events HTTP/1.1", ["Accept: text/event-stream"])],
  [
    "unfinished bodies",
    () => `${head("POST /v1/tasks HTTP/1.1", ["Content-Type: application/json", "Content-Length: 60000"])}{`,
  ],
  [
    "unfinished MCP messages",
    () => `${head("POST /mcp HTTP/1.1", ["Content-Type: application/json", "Content-Length: 60000"])}{`,
  ],
])("a workspace that opens 960 %s", (_name, bytes) => {
  test("does not affect another workspace's calls, sessions and streams", async () => {
    for (let group = 0; group < GROUPS; group++) {
      await crowd.join(server.port, GROUP, bytes());
      await Bun.sleep(50);
      if (group % 8 === 7) await everythingWorks(false);
    }
    await everythingWorks(true);
    expect((await ask("POST", "/v1/workspace/stop")).status).toBe(200);
    crowd.leave();
    await until(async () => (await server.call("GET", "/v1/agents")).status === 200);
  });
});
