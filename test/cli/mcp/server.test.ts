/** A bridge survives restarts of its server, and reports what it cannot do. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { type Desk, openDesk } from "../support.ts";
import { connect, endAll, INITIALIZE, INITIALIZED, request, speak, UPSTREAM } from "./support.ts";

setDefaultTimeout(60_000);

let desk: Desk;
let token: string;
beforeAll(async () => {
  desk = openDesk();
  token = (await desk.out(["token", "create", "--name", "client", "--scope", "admin"])).trim();
  await desk.out(["connector", "add", "fake", "--", process.execPath, UPSTREAM, "plain"]);
});
afterEach(endAll);
afterAll(() => desk.clear());

/** Resolves with the next notification that tools have changed. */
function changes(client: Client): () => Promise<void> {
  let next = Promise.withResolvers<void>();
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    next.resolve();
    next = Promise.withResolvers<void>();
  });
  return () => next.promise;
}

test("changed tools are reported; a server that returns at another address is found, and told about the client", async () => {
  let server = await desk.serve();
  let changed = (): Promise<void> => Promise.reject(new Error("not yet"));
  const { client } = await connect({ cwd: desk.cwd, token }, (made) => {
    changed = changes(made);
  });
  const told = changed();
  await desk.out(["connector", "add", "away", "--url", "http://127.0.0.1:1/mcp"]);
  await desk.out(["connector", "add", "more", "--", process.execPath, UPSTREAM, "plain"]);
  await told;
  const names = async () => (await client.listTools()).tools.map(({ name }) => name);
  expect(await names()).toContain("more__echo");

  // The server is killed during a call. The call fails, because its result is unknown.
  const began = Promise.withResolvers<void>();
  const out = client
    .callTool({ name: "fake__progress", arguments: { steps: 1, hang: true } }, undefined, {
      onprogress: () => began.resolve(),
    })
    .catch(String);
  await began.promise;
  await server.end("SIGKILL");
  expect(await out).toContain("may have taken effect");
  expect(await client.listTools().catch(String)).toContain("cannot be reached");

  // Without waiting for a request, the bridge connects its client to the next server.
  const back = changed();
  server = await desk.serve();
  await back;
  expect(await names()).toContain("more__echo");
  const echo = { name: "more__echo", arguments: { text: "again" } };
  expect((await client.callTool(echo)).content).toEqual([{ type: "text", text: "again" }]);

  // The server restarts unnoticed between two calls: the next call is made once, in a new session.
  await server.end("SIGTERM");
  server = await desk.serve();
  expect((await client.callTool(echo)).content).toEqual([{ type: "text", text: "again" }]);
  await client.close();
  await server.end("SIGTERM");
});

test("a token that has been revoked: the next call reports it, and nothing hangs", async () => {
  const server = await desk.serve();
  const made = await desk.out(["token", "create", "--name", "short", "--scope", "tools:*", "--json"]);
  const { id, secret } = JSON.parse(made) as { id: string; secret: string };
  const { client, stderr } = await connect({ cwd: desk.cwd, token: secret });
  await client.callTool({ name: "time__now", arguments: {} });
  await desk.out(["token", "revoke", id]);
  expect(await client.callTool({ name: "time__now", arguments: {} }).catch(String)).toContain("revoked");
  await client.close();
  expect(stderr()).not.toContain(secret);
  await server.end("SIGTERM");
});

test("no listener at the URL: each request is answered with that error", async () => {
  const spoken = await speak({ cwd: desk.cwd, token, args: ["--url", "http://127.0.0.1:1"] });
  spoken.write(INITIALIZE, INITIALIZED, request(1, "tools/list"));
  spoken.end();
  const { code, answers } = await spoken.ended();
  expect(code).toBe(0);
  expect(answers.map(({ id }) => id)).toEqual(["hello", 1]);
  expect(answers[0]?.error?.message).toContain("http://127.0.0.1:1 cannot be reached");
});

test("something at the URL that is not a Gatehouse gets the token at most once", async () => {
  const seen: string[] = [];
  const other = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(asked) {
      seen.push(new URL(asked.url).pathname);
      return asked.url.endsWith("/moved/mcp")
        ? new Response(null, { status: 307, headers: { location: "/elsewhere" } })
        : new Response("<p>hello</p>", { headers: { "content-type": "text/html" } });
    },
  });
  for (const [path, message] of [
    ["/page", "not an MCP message"],
    ["/moved", "The server answered 307"],
  ]) {
    const spoken = await speak({ cwd: desk.cwd, token, args: ["--url", `${other.url.origin}${path}/`] });
    spoken.write(INITIALIZE);
    spoken.end();
    expect((await spoken.ended()).answers).toMatchObject([
      { id: "hello", error: { message: expect.stringContaining(message ?? "") } },
    ]);
  }
  expect(seen).toEqual(["/page/mcp", "/moved/mcp"]);
  await other.stop(true);
});

test("SIGTERM stops the gateway inside properly: its programs are gone, and the directory is free", async () => {
  // The program may run as a different user.
  chmodSync(desk.cwd, 0o755);
  const notes = join(desk.cwd, "notes");
  mkdirSync(notes);
  chmodSync(notes, 0o777);
  const pidFile = join(notes, "upstream.pid");
  const script = `echo $$ > '${pidFile}'; exec '${process.execPath}' '${UPSTREAM}' plain`;
  await desk.out(["connector", "add", "noted", "--", "/bin/sh", "-c", script]);
  rmSync(pidFile);
  const spoken = await speak({ cwd: desk.cwd, token });
  spoken.write(
    INITIALIZE,
    INITIALIZED,
    request(1, "tools/call", { name: "noted__echo", arguments: { text: "a" } }),
  );
  expect(await spoken.answer(1)).toMatchObject({ result: { content: [{ text: "a" }] } });
  const pid = Number(readFileSync(pidFile, "utf8"));
  expect(() => process.kill(pid, 0)).not.toThrow();
  spoken.kill("SIGTERM");
  const { code, stderr } = await spoken.ended();
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  expect(await desk.out(["token", "list"])).toContain("client");
});

test("a client whose token has tools_mode search finds tools, and calls what it found", async () => {
  const secret = (
    await desk.out(["token", "create", "--name", "few", "--scope", "tools:*", "--tools-mode", "search"])
  ).trim();
  const { client } = await connect({ cwd: desk.cwd, token: secret });
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["call_tool", "find_tools"]);
  await client.close();
});

test.each([
  ["no token", { GATEHOUSE_TOKEN: "" }, [], "GATEHOUSE_TOKEN is not set"],
  ["a token that no header can carry", { GATEHOUSE_TOKEN: "gth_\nx" }, [], "GATEHOUSE_TOKEN is not a token"],
  ["a token's file that does not exist", { GATEHOUSE_TOKEN_FILE: "none" }, [], "GATEHOUSE_TOKEN_FILE"],
  ["an invalid URL", { GATEHOUSE_TOKEN: "gth_x" }, ["--url", "ftp://x"], "--url"],
])("wrong usage exits with 2: %s", async (_, env, args, message) => {
  const ran = await desk.cli(["mcp", ...args], env);
  expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 2, stdout: "" });
  expect(ran.stderr).toContain(message);
});
