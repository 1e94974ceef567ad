/**
 * The one shipped file, alone in an empty folder, with no PATH and an empty HOME. `scripts/test` builds it first; by
 * hand: scripts/build && bun test test/binary
 */
import { afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { version } from "../../package.json";
import { connect, INITIALIZE, INITIALIZED, request, speak } from "../cli/mcp/support.ts";
import { AGENT, type Desk, openDesk } from "../cli/support.ts";
import { allEvents } from "../support/events.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { BINARY, type ServerProcess, tempDir } from "../support/process.ts";

setDefaultTimeout(60_000);

const EVERYTHING = join(import.meta.dir, "../../node_modules/@modelcontextprotocol/server-everything");

const home = tempDir();
const program = join(home.path, "gatehouse-elsewhere");
let desk: Desk;

beforeAll(() => {
  const [built = ""] = BINARY;
  if (!existsSync(built)) throw new Error("there is no dist/gatehouse: run scripts/build");
  // Under another name, in another folder: it needs no file next to it.
  copyFileSync(built, program);
  process.on("exit", home.remove);
});

beforeEach(() => {
  desk = openDesk({ program: [program] });
});

afterEach(() => desk.clear());

const adminToken = () => readFileSync(join(desk.cwd, "gatehouse-data", "admin.token"), "utf8").trim();

async function get(server: ServerProcess, path: string, token = adminToken()): Promise<Response> {
  return desk.call(server, token, "GET", path);
}

test("the program prints its version and the commit it was built from", async () => {
  const shown = JSON.parse(await desk.out(["version", "--json"])) as { version: string; commit: string };
  expect(shown.version).toBe(version);
  expect(shown.commit).toMatch(/^([0-9a-f]{12}(-dirty)?|unknown)$/);
  expect(readdirSync(desk.cwd)).toEqual([]);
});

test("the program serves an agent, a task with its stream, the ledger and the documentation, and shuts down in order", async () => {
  const server = await desk.serve();
  const token = adminToken();
  expect((await desk.call(server, token, "POST", "/v1/agents", AGENT)).status).toBe(201);
  const task = { agent: "helper", prompt: "What time is it?", tools: ["time.now"] };
  const events = await allEvents(await desk.call(server, token, "POST", "/v1/tasks?stream=true", task));
  expect(events[0]?.event).toBe("task.created");
  expect(events.map((event) => event.event)).toContain("tool.result");
  const finished = events.at(-1)?.data;
  expect(finished).toMatchObject({
    status: "succeeded",
    tools_called: [{ tool: "time.now", status: "succeeded" }],
  });
  expect(finished.output).toContain("time.now answered");

  const { data } = (await (await get(server, "/v1/ledger?limit=200")).json()) as {
    data: { action: string }[];
  };
  const actions = data.map((entry) => entry.action);
  for (const action of ["token.issue", "agent.create", "task.dispatch", "model.call", "tool.call"]) {
    expect(actions).toContain(action);
  }

  const document = (await (await get(server, "/openapi.json")).json()) as { openapi: string; paths: object };
  expect(document.openapi).toStartWith("3.");
  expect(Object.keys(document.paths)).toContain("/v1/tasks");
  const page = await (await get(server, "/docs")).text();
  expect(page).toContain("<html");
  const links = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = ""]) => link);
  for (const link of links.filter((each) => !each.startsWith("data:"))) {
    // The page loads only local files, so it opens with no network.
    expect(link).toMatch(/^\/[^/]/);
    expect((await get(server, link)).status).toBe(200);
  }
  expect(links.length).toBeGreaterThan(2);
  expect((await get(server, "/readyz")).status).toBe(200);

  expect(await server.end("SIGTERM")).toBe(0);
  expect(readdirSync(join(desk.cwd, "gatehouse-data")).toSorted()).toEqual([
    "admin.token",
    "gatehouse.db",
    "gatehouse.lock",
    "ledger.key",
    "secrets.key",
    expect.stringMatching(/^vec0-[0-9a-f]{16}\.(so|dylib|dll)$/),
  ]);
});

test("the program contains the vault: its worker, sqlite-vec, an imported folder, and an agent that quotes from it", async () => {
  const folder = join(desk.cwd, "handbook");
  mkdirSync(join(folder, "legal"), { recursive: true });
  writeFileSync(join(folder, "returns.md"), "# Returns\n\nRefunds are paid within fourteen days.\n");
  writeFileSync(
    join(folder, "legal", "terms.html"),
    "<title>Terms</title><p>Contracts end after a year.</p>",
  );
  const server = await desk.serve();
  const token = adminToken();
  const document = { title: "Boats", text: "A sloop has one mast.", scope: "harbour" };
  const written = await desk.call(server, token, "POST", "/v1/vault/documents", document);
  expect(written.status).toBe(201);
  const { id, vectors } = (await written.json()) as { id: string; vectors: string };
  expect(vectors).toBe("ready");
  for (const mode of ["keyword", "vector", "hybrid"]) {
    const found = await desk.call(server, token, "POST", "/v1/vault/search", { query: "sloop mast", mode });
    expect(await found.json()).toMatchObject({ mode, results: [{ document_id: id }] });
  }

  const added = await desk.out(["vault", "add", "handbook", "--scope", AGENT.memory_scope]);
  expect(added).toBe("added 2, replaced 0, unchanged 0, skipped 0, failed 0\n");
  const again = await desk.out(["vault", "add", "handbook", "--scope", AGENT.memory_scope]);
  expect(again).toBe("added 0, replaced 0, unchanged 2, skipped 0, failed 0\n");

  expect((await desk.call(server, token, "POST", "/v1/agents", AGENT)).status).toBe(201);
  const answered = await desk.out([
    ...["task", "run", "--agent", AGENT.name, "--tool", "vault.search"],
    "When are refunds paid?",
  ]);
  expect(answered).toContain("“Refunds are paid within fourteen days.” [1]");
  expect(answered).toContain("[1] Returns");
  expect(answered).not.toContain("sloop");
  expect(await server.end("SIGTERM")).toBe(0);
});

test("the program contains every kind of provider, and calls the endpoint that the configuration names", async () => {
  const upstream = startFakeModel();
  const provider = (kind: string) => `{ kind: ${kind}, api_key: k, base_url: "${upstream.url}" }`;
  const others = { g: "google", a: "anthropic", o: "openai", z: "azure", b: "bedrock", v: "vertex" };
  const kinds = { ...others, mine: "openai-compatible" };
  mkdirSync(join(desk.cwd, "gatehouse-data"), { mode: 0o700 });
  // The upstream speaks only the last provider's protocol and answers 404 to the others, so each provider is tried on
  // the way.
  writeFileSync(
    join(desk.cwd, "gatehouse-data", "gatehouse.yaml"),
    `providers:\n${Object.entries(kinds)
      .map(([name, kind]) => `  ${name}: ${provider(kind)}\n`)
      .join("")}tiers:\n  1: { models: [${Object.keys(kinds).map((name) => `${name}/x`)}] }\n`,
  );
  const server = await desk.serve();
  expect((await desk.call(server, adminToken(), "POST", "/v1/agents", AGENT)).status).toBe(201);
  const ran = await desk.cli(["task", "run", "--agent", AGENT.name, "hello there"]);
  expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 0, stdout: "You said: hello there\n" });
  for (const name of Object.keys(others)) expect(ran.stderr).toContain(`${name}/x failed (http_404)`);
  await upstream.close();
});

test("a command runs with and without a server, and refuses wrong usage", async () => {
  const without = await desk.out(["token", "create", "--name", "one", "--scope", "admin"]);
  const server = await desk.serve();
  const within = await desk.out(["token", "create", "--name", "two", "--scope", "admin"]);
  expect((await get(server, "/v1/agents", without.trim())).status).toBe(200);
  expect((await get(server, "/v1/agents", within.trim())).status).toBe(200);
  expect((await desk.cli(["tokn"])).code).toBe(2);
});

describe("started in a hostile folder", () => {
  const EVIL = `require("node:fs").writeFileSync("ran.txt", "this must not have run");`;

  beforeEach(() => {
    const files: Record<string, string> = {
      ".env":
        "GATEHOUSE_LISTEN=nonsense\nGATEHOUSE_DATA=stolen\nGATEHOUSE_ADMIN_TOKEN=weak\nNODE_OPTIONS=--require=./evil.cjs\n",
      ".env.local": "GATEHOUSE_LOG_LEVEL=nonsense\n",
      ".env.production": "GATEHOUSE_LISTEN=nonsense\n",
      "evil.cjs": EVIL,
      "evil.ts": EVIL,
      "bunfig.toml": 'preload = ["./evil.ts"]\n[run]\npreload = ["./evil.ts"]\n',
      "package.json": JSON.stringify({
        name: "gatehouse",
        version: "9.9.9",
        type: "commonjs",
        main: "./evil.cjs",
        imports: { "#x": "./evil.cjs" },
      }),
      "tsconfig.json": JSON.stringify({ compilerOptions: { paths: { "*": ["./evil.ts"] } } }),
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(desk.cwd, name), text);
    for (const name of ["elysia", "commander", "yaml", "@ai-sdk/openai-compatible"]) {
      const folder = join(desk.cwd, "node_modules", name);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "index.js"), EVIL);
      writeFileSync(join(folder, "package.json"), JSON.stringify({ name, main: "index.js" }));
    }
  });

  test("the program keeps its version and its settings, and runs nothing from the folder", async () => {
    const shown = JSON.parse(await desk.out(["version", "--json"])) as { version: string };
    expect(shown.version).toBe(version);
    const server = await desk.serve();
    expect((await get(server, "/v1/agents")).status).toBe(200);
    expect(await server.end("SIGTERM")).toBe(0);
    expect(existsSync(join(desk.cwd, "stolen"))).toBe(false);
    expect(existsSync(join(desk.cwd, "ran.txt"))).toBe(false);
  });
});

test("the program speaks MCP over stdio, without a server and as a bridge to a running one", async () => {
  const token = (await desk.out(["token", "create", "--name", "client", "--scope", "admin"])).trim();
  const place = { cwd: desk.cwd, token, program: [program] };
  for (const running of [false, true]) {
    const server = running ? await desk.serve() : undefined;
    const { client, stderr } = await connect(place);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("time__now");
    const { structuredContent } = await client.callTool({ name: "time__now", arguments: {} });
    expect(structuredContent).toMatchObject({ now: expect.any(String) });
    await client.close();
    expect(stderr()).toBe("");
    const spoken = await speak(place);
    spoken.write(INITIALIZE, INITIALIZED, request(1, "tools/list"));
    await spoken.answer(1);
    spoken.kill("SIGTERM");
    expect((await spoken.ended()).code).toBe(0);
    if (server) expect(await server.end("SIGTERM")).toBe(0);
  }
});

test("the program speaks MCP over both HTTP transports, and calls upstream servers and an API through them", async () => {
  const server = await desk.serve();
  const token = adminToken();
  const everything = join(EVERYTHING, "dist/index.js");
  const api = Bun.serve({ port: 0, fetch: (asked) => Response.json({ path: new URL(asked.url).pathname }) });
  for (const connector of [
    {
      name: "everything",
      kind: "mcp",
      transport: { type: "stdio", command: process.execPath, args: [everything, "stdio"] },
    },
    {
      name: "shop",
      kind: "openapi",
      base_url: `http://127.0.0.1:${api.port}`,
      spec: "openapi: 3.1.0\ninfo: {title: Shop, version: '1'}\npaths: {/days: {get: {operationId: getDays, responses: {}}}}",
    },
  ]) {
    const added = await desk.call(server, token, "POST", "/v1/connectors", connector);
    expect([added.status, await added.json()]).toMatchObject([201, { status: "ready" }]);
  }
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  for (const transport of [
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit }),
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp/sse`), { requestInit }),
    new SSEClientTransport(new URL(`${server.url}/mcp/sse`), { requestInit }),
  ]) {
    const client = new Client({ name: "test", version: "1" });
    await client.connect(transport);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toContain("everything__get_sum");
    const sum = await client.callTool({ name: "everything__get_sum", arguments: { a: 2, b: 3 } });
    expect(JSON.stringify(sum.content)).toContain("5");
    const days = await client.callTool({ name: "shop__getDays", arguments: {} });
    expect(days.structuredContent).toEqual({ path: "/days" });
    await client.close();
  }
  await api.stop(true);
  expect(await server.end("SIGTERM")).toBe(0);
});
