/** `gatehouse ledger export`: what it writes, and that a file is either complete or absent. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server, Socket } from "node:net";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { CSV_COLUMNS } from "../../src/http/ledger/csv.ts";
import { type Entry, type Ledgered, ledgerOf, linesOf } from "../http/ledger-export-support.ts";
import { fromSources, type ServerProcess } from "../support/process.ts";
import { type Desk, openDesk } from "./support.ts";

setDefaultTimeout(60_000);

const COUNT = 3_000;
const AGENTS = ["scout", "clerk"];
let ledger: Ledgered;
let desk: Desk;
let data: readonly string[];
beforeAll(async () => {
  desk = openDesk();
  ledger = await ledgerOf(COUNT, (index) => ({ agent: AGENTS[index % 2], tier: 1 + (index % 3) }));
  data = ["--data", ledger.path];
});
afterAll(async () => {
  await desk.clear();
  ledger.remove();
});

const exported = (...args: string[]) => desk.cli(["ledger", "export", ...data, ...args]);
const fileOf = (name: string) => readFileSync(join(desk.cwd, name));
/** Bun caches transpiled code in the home folder, which is this one. */
const RUNTIME_CACHE = ".bun";
/** Every file in the folder of the exports, including hidden ones. */
const there = () =>
  readdirSync(desk.cwd)
    .filter((name) => name !== RUNTIME_CACHE)
    .sort();

describe("refused", () => {
  test.each<[args: string[], code: number, message: string]>([
    [[], 2, "--output"],
    [["--output"], 2, "argument missing"],
    [["--output", "x", "--format", "xml"], 2, "article14, ndjson, csv, json"],
    [["--output", "x", "--tier", "one"], 2, "--tier"],
    [["--output", "x", "--from", "yesterday"], 2, "--from: must be an RFC 3339 time"],
    [["--output", "x", "--to", "2026-13-01T00:00:00Z"], 2, "--to"],
    [["--output", "x", "--date", "2026-02-30"], 2, "--date: is not a day"],
    [["--output", "x", "--agent", ""], 2, "--agent"],
    [["--output", "x", "--actor", "a".repeat(201)], 2, "--actor"],
    [["--output", "x", "--workspace", "nowhere"], 1, "nowhere"],
    [["--output", "nowhere/x", "--format", "csv"], 1, "nowhere/x cannot be written: ENOENT"],
    [["--output", ".", "--format", "csv"], 1, ". cannot be written: it is a folder"],
  ])("%p ends with %d", async (args, code, message) => {
    const before = there();
    const ran = await exported(...args);
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code, stdout: "" });
    expect(ran.stderr).toContain(message);
    expect(ran.stderr).not.toMatch(/\n\s+at /);
    expect(there()).toEqual(before);
  });

  test("a zip on a terminal", async () => {
    const { code, shown } = await onTerminal("--output", "-");
    expect(code).toBe(2);
    expect(shown).toContain("a zip file, which cannot be written to a terminal");
  });
});

/** Runs the command on a terminal, as a person sees it. */
async function onTerminal(...args: string[]): Promise<{ readonly code: number; readonly shown: string }> {
  let shown = "";
  const decoder = new TextDecoder();
  const child = Bun.spawn([...(await fromSources()), "ledger", "export", ...data, ...args], {
    cwd: desk.cwd,
    env: { PATH: "", HOME: desk.cwd },
    terminal: {
      cols: 80,
      rows: 24,
      data: (_, bytes) => {
        shown += decoder.decode(bytes, { stream: true });
      },
    },
  });
  const code = await child.exited;
  child.terminal?.close();
  return { code, shown };
}

describe.each([
  ["with a running server", true],
  ["with no server", false],
])("%s", (_, isRunning) => {
  let server: ServerProcess | undefined;
  beforeAll(async () => {
    if (isRunning) server = await desk.serve(data);
  });
  afterAll(async () => {
    await server?.end("SIGTERM");
  });

  test("each format writes the same entries, without messages", async () => {
    for (const format of ["ndjson", "csv", "json"]) {
      expect(await exported("--format", format, "--output", `all.${format}`)).toEqual({
        code: 0,
        stdout: "",
        stderr: "",
      });
    }
    const entries = linesOf(fileOf("all.ndjson").toString());
    expect(entries.length).toBeGreaterThanOrEqual(COUNT);
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
    // Each export appends the entry that records it.
    const array = JSON.parse(fileOf("all.json").toString()) as Entry[];
    expect(array.slice(0, entries.length)).toEqual(entries);
    expect(
      array.slice(entries.length).map(({ action, actor }) => [action, String(actor).slice(0, 5)]),
    ).toEqual([
      ["ledger.read", "user:"],
      ["ledger.read", "user:"],
    ]);
    const [head, ...rows] = parse(fileOf("all.csv"), { record_delimiter: "\r\n" }) as string[][];
    expect(head).toEqual([...CSV_COLUMNS]);
    expect(rows.map(([seq]) => Number(seq))).toEqual(array.slice(0, -1).map(({ seq }) => seq));
  });

  test("filters narrow it, - is standard output, and no match is an empty list", async () => {
    const filters = [
      "--agent",
      "scout",
      "--tier",
      "2",
      "--date",
      "2026-01-02",
      "--from",
      "2026-01-02T03:06:00Z",
    ];
    const ran = await exported(
      "--format",
      "ndjson",
      "--output",
      "-",
      ...filters,
      "--actor",
      "system",
      "--action",
      "test.note",
    );
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: "" });
    const entries = linesOf(ran.stdout);
    expect(entries.length).toBeGreaterThan(100);
    for (const { agent, tier, ts, actor, action } of entries) {
      expect({ agent, tier, actor, action }).toEqual({
        agent: "scout",
        tier: 2,
        actor: "system",
        action: "test.note",
      });
      expect(String(ts) >= "2026-01-02T03:06:00").toBe(true);
    }
    const none = await exported("--format", "json", "--output", "-", "--agent", "nobody");
    expect([none.code, JSON.parse(none.stdout)]).toEqual([0, []]);
  });

  test("an Article 14 bundle is the default format", async () => {
    expect(await exported("--output", "evidence.zip", "--agent", "scout")).toEqual({
      code: 0,
      stdout: "",
      stderr: "",
    });
    expect(fileOf("evidence.zip").subarray(0, 4).toString("latin1")).toBe("PK\u0003\u0004");
    const ran = await exported("--format", "json", "--output", "-", "--action", "ledger.export");
    expect((JSON.parse(ran.stdout) as Entry[]).at(-1)).toMatchObject({
      outcome: "succeeded",
      detail: { format: "article14", filters: { agent: "scout" } },
    });
  });
});

describe("the destination", () => {
  test("an existing file is replaced, even through a link; only its owner may read it", async () => {
    writeFileSync(join(desk.cwd, "old.csv"), "old");
    chmodSync(join(desk.cwd, "old.csv"), 0o644);
    symlinkSync("old.csv", join(desk.cwd, "link.csv"));
    await desk.out(["ledger", "export", ...data, "--format", "csv", "--output", "link.csv"]);
    expect(fileOf("old.csv").toString()).toStartWith("seq,prev,");
    expect(fileOf("link.csv")).toEqual(fileOf("old.csv"));
  });

  test("a pipe is written to, and stays a pipe", async () => {
    const pipe = join(desk.cwd, "pipe");
    expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
    const reader = Bun.spawn(["cat", pipe], { stdout: "pipe" });
    const text = new Response(reader.stdout).text();
    const ran = await exported("--format", "ndjson", "--output", "pipe");
    // Without a writer, the reader would wait forever.
    if (ran.code !== 0) reader.kill();
    expect(ran).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(linesOf(await text).length).toBeGreaterThanOrEqual(COUNT);
  });

  test("a reader of standard output may leave before the end, as head does", async () => {
    const child = Bun.spawn(
      [...(await fromSources()), "ledger", "export", ...data, "--format", "ndjson", "--output", "-"],
      {
        cwd: desk.cwd,
        env: { PATH: "", HOME: desk.cwd },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    const reader = child.stdout.getReader();
    expect((await reader.read()).done).toBe(false);
    await reader.cancel();
    expect(await new Response(child.stderr).text()).toBe("");
    expect(await child.exited).toBe(0);
  });

  test("a full disk behind standard output is a failure", async () => {
    const child = Bun.spawn(
      [...(await fromSources()), "ledger", "export", ...data, "--format", "csv", "--output", "-"],
      {
        cwd: desk.cwd,
        env: { PATH: "", HOME: desk.cwd },
        stdio: ["ignore", Bun.file("/dev/full"), "pipe"],
      },
    );
    expect(await new Response(child.stderr).text()).toContain("standard output cannot be written: ENOSPC");
    expect(await child.exited).toBe(1);
  });

  test("on a terminal, progress is shown and then removed", async () => {
    const { code, shown } = await onTerminal("--format", "csv", "--output", "seen.csv");
    expect(code).toBe(0);
    const CLEAR = "\r\u001B[2K";
    const [before, first = "", ...more] = shown.split(CLEAR);
    expect(before).toBe("");
    expect(first).toMatch(/^\d+\.\d MB written$/);
    expect(more.at(-1)).toBe("");
    expect(fileOf("seen.csv").length).toBeGreaterThan(100_000);
  });
});

describe("an incomplete answer", () => {
  const proxies: Server[] = [];
  afterEach(() => {
    for (const proxy of proxies.splice(0)) proxy.close();
  });

  /**
   * Passes on the server's own answers through a network that lets `most` bytes of an export through, then breaks or
   * hangs.
   */
  async function badNetwork(
    most: number,
    then: "breaks" | "hangs",
  ): Promise<{ readonly hung: Promise<void> }> {
    const server = await desk.serve(data);
    const runtime = join(ledger.path, "server.json");
    const { hung, url } = await proxyOf(server, most, then);
    const known = JSON.parse(readFileSync(runtime, "utf8")) as object;
    writeFileSync(runtime, JSON.stringify({ ...known, url }));
    stopServer = () => server.end("SIGTERM");
    return { hung };
  }
  let stopServer: (() => Promise<unknown>) | undefined;
  afterEach(async () => {
    await stopServer?.();
    stopServer = undefined;
  });

  async function proxyOf(server: ServerProcess, most: number, then: "breaks" | "hangs") {
    const { promise: hung, resolve } = Promise.withResolvers<void>();
    const proxy = createServer((client) => {
      const upstream = new Socket().connect(Number(new URL(server.url).port), "127.0.0.1");
      client.pipe(upstream);
      let sent = 0;
      upstream.on("data", (bytes) => {
        if (sent + bytes.length <= most) client.write(bytes);
        else if (then === "breaks") client.destroy();
        else {
          upstream.pause();
          resolve();
        }
        sent += bytes.length;
      });
      upstream.on("close", () => client.destroy()).on("error", () => {});
      client.on("close", () => upstream.destroy()).on("error", () => {});
    });
    proxies.push(proxy);
    await new Promise<void>((listening) => proxy.listen(0, "127.0.0.1", listening));
    const address = proxy.address();
    if (address === null || typeof address === "string") throw new Error("the proxy has no port");
    return { hung, url: `http://127.0.0.1:${address.port}` };
  }

  test("leaves the earlier file, and no file of its own", async () => {
    await badNetwork(400_000, "breaks");
    writeFileSync(join(desk.cwd, "kept.ndjson"), "before");
    const before = there();
    for (const format of ["ndjson", "json"]) {
      const ran = await exported("--format", format, "--output", "kept.ndjson");
      expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 1, stdout: "" });
      expect(ran.stderr).toContain("the export was interrupted");
    }
    expect(fileOf("kept.ndjson").toString()).toBe("before");
    expect(there()).toEqual(before);
  });

  test("on standard output is reported by the exit code", async () => {
    await badNetwork(400_000, "breaks");
    const ran = await exported("--format", "ndjson", "--output", "-");
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain("the export was interrupted");
    expect(ran.stdout.length).toBeLessThan(400_000);
  });

  test.each(["SIGINT", "SIGTERM"] as const)("%s leaves nothing behind", async (signal) => {
    const { hung } = await badNetwork(400_000, "hangs");
    const folder = join(desk.cwd, signal);
    mkdirSync(folder);
    const child = Bun.spawn(
      [
        ...(await fromSources()),
        "ledger",
        "export",
        ...data,
        "--format",
        "csv",
        "--output",
        join(folder, "x.csv"),
      ],
      { cwd: desk.cwd, env: { PATH: "", HOME: desk.cwd }, stdio: ["ignore", "ignore", "pipe"] },
    );
    await hung;
    while (readdirSync(folder).length === 0) await Bun.sleep(5);
    child.kill(signal);
    expect(await new Response(child.stderr).text()).toContain("stopped before the export was complete");
    expect(await child.exited).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  });
});
