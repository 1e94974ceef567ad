/**
 * The configurations for connectors and MCP clients in docs/connectors.md, exactly as printed there, except for
 * address, token and folders.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { fromSources, type ServerProcess } from "../../support/process.ts";
import { AGENT, type Desk, openDesk } from "../support.ts";
import { UPSTREAM } from "./support.ts";

setDefaultTimeout(60_000);

const ROOT = join(import.meta.dir, "..", "..", "..");
const page = readFileSync(join(ROOT, "docs", "connectors.md"), "utf8");

interface Entry {
  readonly type?: string;
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
}
interface ClientFile {
  readonly mcpServers?: Readonly<Record<string, Entry>>;
  readonly servers?: Readonly<Record<string, Entry>>;
}

let desk: Desk;
let server: ServerProcess;
let admin: string;
let token: string;

beforeAll(async () => {
  desk = openDesk();
  admin = (await desk.out(["token", "create", "--name", "boss", "--scope", "admin"])).trim();
  // The page starts its server with npx. Nothing is downloaded here: another program replaces npx.
  const programs = join(desk.cwd, "bin");
  mkdirSync(programs);
  // The program may run as a different user.
  chmodSync(desk.cwd, 0o755);
  writeFileSync(join(programs, "npx"), `#!/bin/sh\nexec '${process.execPath}' '${UPSTREAM}' plain\n`);
  chmodSync(join(programs, "npx"), 0o755);
  server = await desk.serve([], { PATH: programs });
  await desk.call(server, admin, "POST", "/v1/agents", AGENT);
  const line = shell("gatehouse token create").trim().split(" ").slice(1);
  token = (await desk.out(line)).trim();
});
afterAll(() => desk.clear());

function blocks(language: string): string[] {
  const found = page.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "gm"));
  return [...found].map(([, block = ""]) => block);
}

function shell(start: string): string {
  const block = blocks("sh").find((each) => each.startsWith(start));
  if (block === undefined) throw new Error(`docs/connectors.md has no block that starts with ${start}`);
  return block;
}

function entries(): Entry[] {
  return blocks("json").flatMap((block) => {
    const filled = block
      .replaceAll("http://127.0.0.1:8420", server.url)
      .replaceAll("gth_…", token)
      .replaceAll("/srv/gatehouse-data", join(desk.cwd, "gatehouse-data"));
    const { mcpServers, servers } = JSON.parse(filled) as ClientFile;
    return Object.values(mcpServers ?? servers ?? {});
  });
}

async function tools(transport: Transport): Promise<string[]> {
  const client = new Client({ name: "tests", version: "1" });
  await client.connect(transport);
  const listed = await client.listTools();
  await client.callTool({ name: "time__now", arguments: {} });
  await client.close();
  return listed.tools.map(({ name }) => name);
}

test("clients over HTTP: with the printed type, http, sse, and none", async () => {
  const urls = entries().filter(({ url }) => url !== undefined);
  expect(urls.map(({ type }) => type)).toEqual([undefined, "http"]);
  for (const { url = "", type, headers = {} } of urls) {
    const init = { requestInit: { headers } };
    const http = () => new StreamableHTTPClientTransport(new URL(url), init);
    const sse = () => new SSEClientTransport(new URL(url), init);
    // A client that is given no type tries Streamable HTTP first, then the older transport.
    for (const open of type === undefined ? [http, sse] : [http]) {
      expect(await tools(open())).toEqual(expect.arrayContaining(["agents__helper", "time__now"]));
    }
  }
});

test("clients that start a command", async () => {
  const [entry] = entries().filter(({ command }) => command !== undefined);
  expect(entry?.command).toBe("gatehouse");
  const [command = "", ...rest] = await fromSources();
  const env = { PATH: "", HOME: desk.cwd, ...entry?.env };
  const transport = new StdioClientTransport({ command, args: [...rest, ...(entry?.args ?? [])], env });
  expect(await tools(transport)).toContain("agents__helper");
});

test("a connector over REST", async () => {
  const [block = ""] = blocks("json").filter((each) => each.includes('"kind"'));
  const body = JSON.parse(block.replace("https://mcp.example.org", "http://127.0.0.1:1").replace("…", "x"));
  const made = await desk.call(server, admin, "POST", "/v1/connectors", body);
  expect(made.status).toBe(201);
  expect((await desk.call(server, admin, "DELETE", "/v1/connectors/wiki")).status).toBe(204);
});

test("connectors on the command line, pasted into a shell", async () => {
  mkdirSync(join(desk.cwd, ".cursor"));
  const servers = { fake: { command: process.execPath, args: [UPSTREAM, "plain"] } };
  writeFileSync(join(desk.cwd, ".cursor", "mcp.json"), JSON.stringify({ mcpServers: servers }));
  writeFileSync(
    join(desk.cwd, "shop.yaml"),
    "openapi: 3.1.0\ninfo: { title: Shop, version: '1' }\nservers: [{ url: 'http://127.0.0.1:1' }]\n" +
      "paths:\n  /a: { get: { operationId: get_a, responses: { '200': { description: a } } } }\n" +
      "  /b: { post: { operationId: make_b, responses: { '200': { description: b } } } }\n",
  );
  const program = (await fromSources()).map((word) => `'${word}'`).join(" ");
  const lines = shell("gatehouse connector").replace("https://mcp.example.org", "http://127.0.0.1:1");
  const child = Bun.spawn(["/bin/sh", "-euc", `gatehouse() { ${program} "$@"; }\n${lines}`], {
    cwd: desk.cwd,
    env: { PATH: "", HOME: desk.cwd, WIKI_KEY: "k1", SHOP_KEY: "k2" },
    stdout: "pipe",
    stderr: "pipe",
  });
  expect((await new Response(child.stdout).text()).trim().split("\n")).toEqual([
    expect.stringMatching(/^files: ready, \d+ tools$/),
    expect.stringMatching(/^wiki: unreachable/),
    "shop: ready, 1 tool",
    expect.stringMatching(/^fake: ready, \d+ tools$/),
  ]);
  expect(await child.exited).toBe(0);
});
