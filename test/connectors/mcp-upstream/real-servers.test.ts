import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ToolProgress } from "../../../src/connectors/source.ts";
import { faultOf, type Opened, open, textOf } from "./support.ts";

/** The script that an npm package runs as its command. */
function command(name: string): string {
  const root = join(Bun.resolveSync(`${name}/package.json`, import.meta.dir), "..");
  const { bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    bin: Record<string, string>;
  };
  return join(root, Object.values(bin)[0] ?? "");
}

setDefaultTimeout(30_000);

const EVERYTHING = command("@modelcontextprotocol/server-everything");
const FILESYSTEM = command("@modelcontextprotocol/server-filesystem");

/** Exercises what the everything server offers over every transport. */
async function exercise(up: Opened): Promise<void> {
  const names = (await up.list()).map(({ name }) => name);
  expect(names).toContain("echo");
  // This tool answers only through MCP tasks.
  expect(names).not.toContain("simulate-research-query");
  expect(textOf(await up.call("echo", { message: "hi" }))).toBe("Echo: hi");
  expect(await up.call("get-structured-content", { location: "Chicago" })).toMatchObject({
    structuredContent: { conditions: "Light rain / drizzle" },
  });
  expect((await up.call("get-tiny-image")).content).toContainEqual(
    expect.objectContaining({ type: "image", mimeType: "image/png" }),
  );
  const told: ToolProgress[] = [];
  const long = { duration: 0.03, steps: 3 };
  await up.call("trigger-long-running-operation", long, { progress: (progress) => told.push(progress) });
  expect(told.map(({ progress }) => progress)).toEqual([1, 2, 3]);
  expect(await up.call("get-sum", { a: "one", b: 2 })).toMatchObject({ isError: true });
}

test("the everything server works over stdio", async () => {
  await using up = open({
    type: "stdio",
    command: process.execPath,
    args: [EVERYTHING],
    env: { GREETING: "hi" },
  });
  await exercise(up);
  expect(JSON.parse(textOf(await up.call("get-env")))).toEqual({ GREETING: "hi" });
});

describe.each([
  ["http", "streamableHttp", "/mcp"],
  ["sse", "sse", "/sse"],
] as const)("the everything server over %s", (type, mode, path) => {
  test("works; killed during a call, it is not called twice; restarted, it is reached", async () => {
    const port = freePort();
    await using first = await serveEverything(mode, port);
    await using up = open({ type, url: `http://127.0.0.1:${port}${path}`, headers: {} });
    await exercise(up);
    const out = Promise.withResolvers<void>();
    const long = { duration: 60, steps: 6_000 };
    const call = faultOf(up.call("trigger-long-running-operation", long, { progress: () => out.resolve() }));
    await out.promise;
    await first[Symbol.asyncDispose]();
    expect(await call).toMatch(/^unreachable: .* It is unknown whether the call was carried out\.$/);
    await using _second = await serveEverything(mode, port);
    // Over SSE the loss was noticed at once. Over HTTP, the next call finds that the session is gone.
    expect(textOf(await up.call("echo", { message: "again" }))).toBe("Echo: again");
  });
});

test("the filesystem server lists and reads, and works again after it was killed", async () => {
  const directory = mkdtempSync(join(tmpdir(), "gatehouse-mcp-"));
  try {
    writeFileSync(join(directory, "a.txt"), "the text of a");
    const args = [FILESYSTEM, directory];
    await using up = open({ type: "stdio", command: process.execPath, args, env: {} });
    const tools = await up.list();
    expect(tools.find(({ name }) => name === "write_file")).toMatchObject({ destructive: true });
    expect(tools.find(({ name }) => name === "read_text_file")).toMatchObject({ destructive: false });
    const read = () => up.call("read_text_file", { path: join(directory, "a.txt") });
    expect(textOf(await read())).toBe("the text of a");
    expect(await up.call("read_text_file", { path: "/etc/hostname" })).toMatchObject({ isError: true });
    process.kill(running(args), "SIGKILL");
    // The program may have ended before or after the call was written.
    await read().catch(() => {});
    expect(textOf(await read())).toBe("the text of a");
    const last = running(args);
    await up.source.close();
    expect(() => process.kill(-last, 0)).toThrow("ESRCH");
  } finally {
    rmSync(directory, { recursive: true });
  }
});

/** The pid of the process with these arguments. */
function running(args: readonly string[]): number {
  const wanted = args.join("\0");
  const found = [...new Bun.Glob("[0-9]*/cmdline").scanSync("/proc")].find((path) => {
    try {
      return readFileSync(join("/proc", path), "utf8").includes(wanted);
    } catch {
      // The process has ended since it was listed.
      return false;
    }
  });
  return Number(found?.split("/")[0]);
}

function freePort(): number {
  const server = Bun.serve({ port: 0, fetch: () => new Response() });
  const { port = 0 } = server;
  server.stop(true);
  return port;
}

async function serveEverything(mode: string, port: number): Promise<AsyncDisposable> {
  const child = Bun.spawn([process.execPath, EVERYTHING, mode], {
    env: { PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const reader = child.stderr.getReader();
  const decoder = new TextDecoder();
  for (let said = ""; !said.includes(String(port)); ) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the server did not start: ${said}`);
    said += decoder.decode(value, { stream: true });
  }
  return {
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
