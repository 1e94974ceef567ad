/** A server is killed during a call. The next start records that the outcome is unknown, and makes no call. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readFile, unsettled } from "../faults/support.ts";
import { chainFaults } from "../ledger/support.ts";
import { type ServerProcess, serve, tempDir } from "../support/process.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { until } from "../tasks/support.ts";
import { BOTH, hello, request } from "./support.ts";

const directory = tempDir();
const data = join(directory.path, "gatehouse-data");
let upstream: ScriptedMcp;
beforeAll(() => {
  mkdirSync(data, { mode: 0o700 });
  upstream = startScriptedMcp(["slow"]);
});
afterAll(async () => {
  await upstream.close();
  directory.remove();
});

function ask(server: ServerProcess, path: string, body: object, headers: Record<string, string> = {}) {
  const token = readFileSync(join(data, "admin.token"), "utf8").trim();
  return fetch(server.url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: BOTH,
      ...headers,
    },
    body: JSON.stringify(body),
  });
}

async function openSession(server: ServerProcess): Promise<Record<string, string>> {
  const response = await ask(server, "/mcp", hello());
  await response.text();
  return { "mcp-session-id": response.headers.get("mcp-session-id") ?? "" };
}

test("its outcome is recorded once as unknown, and the ledger is valid", async () => {
  const options = { cwd: directory.path };
  const first = await serve([], options);
  const transport = { type: "http", url: upstream.url };
  expect((await ask(first, "/v1/connectors", { name: "up", kind: "mcp", transport })).status).toBe(201);
  upstream.answer(() => new Promise(() => {}));
  const session = await openSession(first);
  const out = ask(first, "/mcp", request("tools/call", { name: "up__slow", arguments: { n: 1 } }), session);
  const broken = out.then((response) => response.text()).catch(() => "");
  await until(() => upstream.calls.length === 1);
  await first.end("SIGKILL");
  await broken;

  const second = await serve([], options);
  // Sessions are only in memory. The client is told that its session is gone, and opens a new one.
  expect((await ask(second, "/mcp", request("tools/list"), session)).status).toBe(404);
  await (await ask(second, "/mcp", request("tools/list"), await openSession(second))).text();
  expect(await second.end("SIGTERM")).toBe(0);
  const third = await serve([], options);
  expect((await fetch(`${third.url}/livez`)).status).toBe(200);
  expect(await third.end("SIGTERM")).toBe(0);

  const { entries, rows, integrity } = readFile(join(data, "gatehouse.db"));
  const calls = entries.filter(({ action }) => action === "tool.call");
  expect(calls).toMatchObject([
    { phase: "intent", outcome: "allowed", channel: "mcp", tool: "up.slow" },
    { phase: "outcome", outcome: "failed", code: "unknown", channel: "system", tool: "up.slow" },
  ]);
  expect(calls[1]?.ref).toBe(calls[0]?.seq);
  expect(unsettled(entries)).toEqual([]);
  expect(chainFaults(rows)).toEqual([]);
  expect(integrity).toEqual([{ integrity_check: "ok" }]);
  expect(upstream.calls).toHaveLength(1);
}, 60_000);

test("a server told to stop ends the calls in flight, and has their outcomes on disk", async () => {
  const options = { cwd: directory.path };
  const server = await serve([], options);
  const before = upstream.calls.length;
  const session = await openSession(server);
  const out = ask(server, "/mcp", request("tools/call", { name: "up__slow", arguments: {} }), session);
  const ended = out.then((response) => response.text()).catch(() => "");
  await until(() => upstream.calls.length > before);
  expect(await server.end("SIGTERM")).toBe(0);
  await ended;
  const { entries } = readFile(join(data, "gatehouse.db"));
  expect(entries.at(-1)).toMatchObject({ action: "tool.call", phase: "outcome", outcome: "cancelled" });
  expect(unsettled(entries)).toEqual([]);
  await until(() => upstream.heard.includes("notifications/cancelled"));
}, 60_000);
