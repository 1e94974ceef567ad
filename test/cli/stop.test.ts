/** `stop-all`, `resume-all`, `workspace stop` and `workspace resume`, with and without a running server. */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProgram } from "../../src/cli/program.ts";
import { databasePath } from "../../src/store/directory.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { atOpen } from "../support/own-connection.ts";
import type { ServerProcess } from "../support/process.ts";
import { until, yamlOf } from "../tasks/support.ts";
import { AGENT, openDesk } from "./support.ts";

setDefaultTimeout(60_000);

const desk = openDesk();
const upstream = startFakeModel({ fallback: { hang: true } });
const data = join(desk.cwd, "gatehouse-data");
let server: ServerProcess;
let token: string;

beforeAll(async () => {
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, "gatehouse.yaml"), yamlOf(upstream.url, { tiers: { 1: ["hangs"] } }));
  await desk.out(["workspace", "create", "other"]);
  server = await desk.serve();
  token = readFileSync(join(data, "admin.token"), "utf8").trim();
  await call("POST", "/v1/agents", AGENT);
});
afterAll(async () => {
  await desk.clear();
  await upstream.close();
});

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
async function call(method: string, path: string, body?: object): Promise<any> {
  return (await desk.call(server, token, method, path, body)).json();
}
const task = { agent: AGENT.name, prompt: "hi" };
const STATUS = (text: string) => `default\t${text}\nother\t${text}\n`;

test("an unknown workspace is reported", async () => {
  const ran = await desk.cli(["workspace", "stop", "nowhere"]);
  expect([ran.code, ran.stdout]).toEqual([1, ""]);
  expect(ran.stderr).toContain("nowhere");
  expect((await desk.cli(["workspace", "stop"])).code).toBe(2);
  expect((await desk.cli(["stop-all", "default"])).code).toBe(2);
});

test("without a Gatehouse, nothing is stopped, created or reported as stopped", async () => {
  const elsewhere = join(desk.cwd, "elsewhere");
  for (const verb of [
    ["stop-all"],
    ["resume-all"],
    ["workspace", "stop", "default"],
    ["workspace", "resume", "default"],
  ]) {
    const ran = await desk.cli([...verb, "--data", elsewhere]);
    expect([ran.code, ran.stdout]).toEqual([1, ""]);
    expect(ran.stderr).toContain(`there is no Gatehouse in ${elsewhere}`);
  }
  expect(existsSync(elsewhere)).toBe(false);
});

describe("with a server", () => {
  test("stop-all ends what is running, up to the upstream, and resume-all lets it work", async () => {
    const { id } = await call("POST", "/v1/tasks", task);
    await until(() => upstream.requests.length === 1);
    expect(await desk.out(["stop-all"])).toBe(STATUS("stopped"));
    expect(await call("GET", `/v1/tasks/${id}`)).toMatchObject({
      status: "cancelled",
      error: { code: "agent_stopped" },
    });
    await until(() => upstream.requests[0]?.aborted === true);
    expect((await call("POST", "/v1/tasks", task)).code).toBe("agent_stopped");
    expect(await desk.out(["resume-all"])).toBe(STATUS("active"));
    expect((await call("POST", "/v1/tasks", task)).status).toBe("queued");
  });

  test("workspace stop ends only that workspace", async () => {
    expect(JSON.parse(await desk.out(["workspace", "stop", "default", "--json"]))).toMatchObject({
      name: "default",
      status: "stopped",
    });
    expect(await desk.out(["workspace", "list"])).toMatch(/^default\s.*\sstopped\s*\nother\s.*\sactive/m);
    expect(await desk.out(["workspace", "resume", "default"])).toBe("default\tactive\n");
  });
});

describe("without a server", () => {
  test("a stop that cannot be written is reported as failed, because nothing enforces it", async () => {
    const other = join(desk.cwd, "full");
    await desk.out(["workspace", "list", "--data", other]);
    // In this process: a start refuses such a trigger of another program.
    atOpen(databasePath(other), (writer) =>
      writer.run(
        "CREATE TEMP TRIGGER full BEFORE INSERT ON main.ledger BEGIN SELECT RAISE(ABORT, 'full'); END",
      ),
    );
    // Not with `rejects`, which waits in the middle of a turn of the event loop, so timers and threads hardly run.
    const args = ["stop-all", "--data", other];
    const program = await createProgram(args);
    const failure = await program.parseAsync(args, { from: "user" }).then(() => null, String);
    expect(failure).toContain("nothing was recorded");
    using file = new Database(databasePath(other), { readonly: true });
    expect(file.query("SELECT status FROM workspaces").all()).toEqual([{ status: "active" }]);
  });

  test("the next start finds everything stopped, and ends what was queued, running or waiting for a person", async () => {
    const { id: running } = await call("POST", "/v1/tasks", task);
    await until(() => upstream.requests.some(({ aborted }) => !aborted));
    await call("PATCH", "/v1/workspace", { limits: { concurrent_tasks: 1, enforcement: "enforced" } });
    const { id: queued } = await call("POST", "/v1/tasks", task);
    await server.end("SIGKILL");
    expect(await desk.out(["stop-all"])).toBe(STATUS("stopped"));
    const asked = upstream.requests.length;
    server = await desk.serve();
    for (const id of [running, queued]) {
      await until(async () => (await call("GET", `/v1/tasks/${id}`)).status === "cancelled");
      expect((await call("GET", `/v1/tasks/${id}`)).error.code).toBe("agent_stopped");
    }
    expect(upstream.requests.length).toBe(asked);
    expect((await call("GET", "/v1/workspace")).status).toBe("stopped");
    expect(await desk.out(["resume-all", "--json"]).then(JSON.parse)).toMatchObject([
      { status: "active" },
      { status: "active" },
    ]);
    expect((await call("GET", "/v1/workspace")).status).toBe("active");
  });
});
