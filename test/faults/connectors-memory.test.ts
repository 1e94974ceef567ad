/**
 * A tenant whose upstreams offer as many tools as they can does not exhaust the server's memory, neither now nor
 * after a restart.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { run, type ServerProcess, serve, tempDir } from "../support/process.ts";

const MIB = 1024 * 1024;
/** Tools of one connector. One more would exceed its limit. */
const TOOLS = 130;
const CONNECTORS = 12;
/**
 * Kept as parsed objects, the tools took 2,400 MiB. A workspace may keep 32 MiB of them. The rest is the program
 * itself, the pages that it read, and uncollected garbage.
 */
const CEILING = 600 * MIB;

/** Alternating: one long text, and as many values as a message may have in total. */
const SCHEMAS = [
  { type: "object", properties: { a: { type: "string", description: "x".repeat(60_000) } } },
  { type: "object", examples: Array.from({ length: 700 }, () => []), description: "x".repeat(57_500) },
];

let upstream: ReturnType<typeof startUpstream>;
const folder = tempDir();
beforeAll(() => {
  upstream = startUpstream();
});
afterAll(async () => {
  await upstream.stop(true);
  folder.remove();
});

function startUpstream() {
  const tools = Array.from({ length: TOOLS }, (_, at) => ({
    name: `t${at}`,
    inputSchema: SCHEMAS[at % SCHEMAS.length],
  }));
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      if (request.method !== "POST") return new Response(null, { status: 405 });
      const { id, method } = (await request.json()) as { readonly id?: number; readonly method: string };
      if (id === undefined) return new Response(null, { status: 202 });
      const serverInfo = { name: "wide", version: "1" };
      const result =
        method === "tools/list"
          ? { tools }
          : { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo };
      return Response.json({ jsonrpc: "2.0", id, result });
    },
  });
}

function memoryOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

test.skipIf(process.platform !== "linux")(
  "twelve connectors of 130 large tools take a bounded share of memory, even after a restart",
  async () => {
    const options = { cwd: folder.path };
    let server: ServerProcess = await serve([], options);
    const made = await run(["token", "create", "--name", "t", "--scope", "admin", "--json"], options);
    const headers = {
      authorization: `Bearer ${JSON.parse(made.stdout).secret}`,
      "content-type": "application/json",
    };
    const statuses: number[] = [];
    for (let at = 0; at < CONNECTORS; at++) {
      const transport = { type: "http", url: upstream.url.href };
      const body = JSON.stringify({ name: `c${at}`, kind: "mcp", transport });
      const response = await fetch(`${server.url}/v1/connectors`, { method: "POST", headers, body });
      await response.body?.cancel();
      statuses.push(response.status);
    }
    expect(statuses).toEqual(statuses.map(() => 201));
    const withTools = async () => {
      const counts: number[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const page = await fetch(`${server.url}/v1/connectors?limit=200${cursor && `&cursor=${cursor}`}`, {
          headers,
        });
        const { data, next_cursor } = (await page.json()) as {
          readonly data: readonly { readonly kind: string; readonly tools: readonly object[] }[];
          readonly next_cursor: string | null;
        };
        counts.push(...data.filter(({ kind }) => kind === "mcp").map(({ tools }) => tools.length));
        cursor = next_cursor;
      }
      return counts;
    };
    const before = await withTools();
    expect(before).toHaveLength(CONNECTORS);
    // As many as fit into the workspace's share, and no more.
    expect(before.filter((count) => count === TOOLS).length).toBeGreaterThan(2);
    expect(before.filter((count) => count === 0).length).toBeGreaterThan(2);
    expect(memoryOf(server.pid)).toBeLessThan(CEILING);

    expect(await server.end("SIGTERM")).toBe(0);
    server = await serve([], options);
    expect(await withTools()).toEqual(before);
    expect(memoryOf(server.pid)).toBeLessThan(CEILING);
    await server.end("SIGKILL");
  },
  120_000,
);
