/** A server dies during several calls: the next start reports each of them once, and makes no call. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { databasePath } from "../../src/store/directory.ts";
import { readFile, unsettled } from "../faults/support.ts";
import { chainFaults } from "../ledger/support.ts";
import { addConnector, BOTH, connect, hello, request } from "../mcp/support.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway } from "../support/gateway.ts";
import { fileStore } from "../support/lasting-store.ts";
import { type ServerProcess, serve, tempDir } from "../support/process.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { gate, until } from "../tasks/support.ts";
import type { LedgerEntry } from "./bench.ts";

/** Calls that begin at the same moment, with no other call in flight. */
const TOGETHER = 6;
const HOUSEKEEPING_MS = 5_000;

let directory: ReturnType<typeof tempDir>;
let upstream: ScriptedMcp;
beforeEach(() => {
  directory = tempDir();
  upstream = startScriptedMcp(["quick", "slow"]);
  upstream.answer(({ name }) => (name === "quick" ? text("done") : new Promise(() => {})));
});
afterEach(async () => {
  await upstream.close();
  directory.remove();
});

const call = (name: string, n = 0) => request("tools/call", { name: `up__${name}`, arguments: { n } });
const together = () => Array.from({ length: TOGETHER }, (_, n) => call("slow", n));
const slow = () => upstream.calls.filter(({ name }) => name === "slow").length;

/** The entries of calls in the file, even of a running server. */
function callsIn(path: string): LedgerEntry[] {
  const entries = readFile(path).rows.map(({ bytes }) => JSON.parse(bytes) as LedgerEntry);
  return entries.filter(({ action }) => action === "tool.call");
}

const outcomesIn = (path: string) => callsIn(path).filter(({ phase }) => phase === "outcome");

/** The calls' outcomes in the file after all its servers have ended: one for each call, in this order. */
function reported(path: string): string[] {
  const { entries, rows, integrity } = readFile(path);
  expect(unsettled(entries)).toEqual([]);
  expect(chainFaults(rows)).toEqual([]);
  expect(integrity).toEqual([{ integrity_check: "ok" }]);
  const intents = callsIn(path).filter(({ phase }) => phase === "intent");
  const outcomes = outcomesIn(path);
  expect(outcomes).toHaveLength(intents.length);
  return outcomes.map(({ tool, outcome, code, channel }) => [tool, outcome, code, channel].join(" "));
}

const UNKNOWN = "up.slow failed unknown system";
const DONE = "up.quick succeeded  mcp";

test("killed with calls that began together: each is unknown, and a call that had ended is unchanged", async () => {
  const data = join(directory.path, "gatehouse-data");
  mkdirSync(data, { mode: 0o700 });
  const options = { cwd: directory.path };
  const server = await serve([], options);
  const token = readFileSync(join(data, "admin.token"), "utf8").trim();
  const ask = (path: string, body: object, session?: string) => post(server, token, path, body, session);
  const transport = { type: "http", url: upstream.url };
  expect((await ask("/v1/connectors", { name: "up", kind: "mcp", transport })).status).toBe(201);
  const opened = await ask("/mcp", hello());
  await opened.text();
  const session = opened.headers.get("mcp-session-id") ?? "";
  // All requests are in one message, so they begin in the same turn
  // of the server's event loop.
  const out = ask("/mcp", [...together(), call("quick")], session);
  const broken = out.then((response) => response.text()).catch(() => "");
  await until(() => slow() === TOGETHER && outcomesIn(databasePath(data)).length === 1);
  await server.end("SIGKILL");
  await broken;
  const called = upstream.calls.length;
  // The second start finds nothing left to report.
  for (const _ of [1, 2]) {
    const next = await serve([], options);
    expect(await next.end("SIGTERM")).toBe(0);
  }
  expect(reported(databasePath(data))).toEqual([DONE, ...Array(TOGETHER).fill(UNKNOWN)]);
  expect(upstream.calls).toHaveLength(called);
}, 60_000);

function post(server: ServerProcess, token: string, path: string, body: object, session?: string) {
  return fetch(server.url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: BOTH,
      ...(session === undefined ? {} : { "mcp-session-id": session }),
    },
    body: JSON.stringify(body),
  });
}

test("after housekeeping between calls, and with all notes deleted, each call in flight is unknown", async () => {
  const clock = new FakeClock();
  // What a dead process leaves is a copy of its files.
  const store = fileStore();
  const gateway = await startGateway({ ...store.options, clock });
  const path = databasePath(gateway.dataDir);
  await addConnector(gateway, "up", upstream.url);
  const client = await connect(gateway);
  const first = gate();
  upstream.answer(({ name, input }) => {
    if (name === "quick") return text("done");
    return input.n === 0 ? first.opened.then(() => text("done")) : new Promise(() => {});
  });
  await client.call("up__quick");
  clock.advance(HOUSEKEEPING_MS);
  const out = await client.open(together());
  await until(() => slow() === TOGETHER);
  first.open();
  await until(() => outcomesIn(path).length === 2);
  clock.advance(HOUSEKEEPING_MS);
  await client.call("up__quick");
  // A copy of the files at this moment is what a process that died now would leave.
  const copy = join(directory.path, "copy");
  const isKept = (file: string) => !/-shm$|\.lock|server\.json$/.test(file);
  cpSync(gateway.dataDir, copy, { recursive: true, filter: isKept });
  await gateway.stop();
  await store.remove();
  await out.body?.cancel();
  const file = new Database(databasePath(copy));
  file.exec("DELETE FROM meta WHERE key LIKE 'calls_open_from:%' OR key LIKE 'ledger_history:%'");
  file.close();
  for (const _ of [1, 2]) await (await startGateway({ dataDir: copy })).stop();
  const done = "up.slow succeeded  mcp";
  expect(reported(databasePath(copy))).toEqual([DONE, done, DONE, ...Array(TOGETHER - 1).fill(UNKNOWN)]);
  expect(slow()).toBe(TOGETHER);
}, 30_000);
