import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fromSources, type ServerProcess } from "../support/process.ts";
import { type Desk, openDesk } from "./support.ts";

setDefaultTimeout(60_000);

const LINK = /^http:\/\/127\.0\.0\.1:\d+\/console#link=(gthl_[0-9A-Za-z]{49})$/;

let desk: Desk;
beforeEach(() => {
  desk = openDesk();
});
afterEach(() => desk.clear());

const secretOf = (text: string) => LINK.exec(text.trim())?.[1] ?? "";
const redeem = (server: Pick<ServerProcess, "url">, secret: string) =>
  fetch(`${server.url}/v1/session`, { method: "POST", headers: { authorization: `Bearer ${secret}` } });

describe("gatehouse console", () => {
  test("is refused when no server runs, and creates no data directory", async () => {
    const ran = await desk.cli(["console"]);
    expect([ran.code, ran.stdout]).toEqual([1, ""]);
    expect(ran.stderr).toContain("no server runs");
    expect(ran.stderr).toContain("gatehouse serve");
    expect(readdirSync(desk.cwd)).toEqual([]);
  });

  test("is refused after the server was killed, whatever now answers at its address", async () => {
    const server = await desk.serve();
    const runtime = join(desk.cwd, "gatehouse-data", "server.json");
    await server.end("SIGKILL");
    expect(existsSync(runtime)).toBe(true);
    const { port, hostname } = new URL(server.url);
    let asked = 0;
    const stranger = Bun.serve({
      port: Number(port),
      hostname,
      fetch() {
        asked += 1;
        return Response.json({ url: "https://evil.example/" }, { status: 201 });
      },
    });
    const ran = await desk.cli(["console"]);
    await stranger.stop(true);
    expect([ran.code, ran.stdout, asked]).toEqual([1, "", 0]);
  });

  test("is refused in an unknown workspace, and in one without an admin token", async () => {
    await desk.serve();
    const nowhere = await desk.cli(["console", "--workspace", "nowhere"]);
    expect([nowhere.code, nowhere.stdout]).toEqual([1, ""]);
    await desk.out(["workspace", "create", "bare"]);
    const bare = await desk.cli(["console", "--workspace", "bare"]);
    expect([bare.code, bare.stdout]).toEqual([1, ""]);
    expect(bare.stderr).toContain("gatehouse token create --name admin --scope admin --workspace bare");
  });

  test("prints only a link on standard output, which signs in once", async () => {
    const server = await desk.serve();
    const out = await desk.out(["console"]);
    expect(out.trim()).toMatch(LINK);
    const signedIn = await redeem(server, secretOf(out));
    expect(signedIn.status).toBe(201);
    expect(await signedIn.json()).toMatchObject({ workspace: "default", token: { name: "admin" } });
    expect((await redeem(server, secretOf(out))).status).toBe(401);
    const json = JSON.parse(await desk.out(["console", "--json"])) as { url: string; expires_at: string };
    expect(json.url).toMatch(LINK);
    expect(Date.parse(json.expires_at)).toBeGreaterThan(Date.now());
    expect(server.stderr()).not.toMatch(/gth[a-z]?_\w/);
    expect(readFileSync(`/proc/${server.pid}/cmdline`, "utf8")).not.toMatch(/gth[a-z]?_/);
  });
});

describe("the first start", () => {
  /** Starts a server on a terminal and collects everything that it prints there. */
  async function serveOnTerminal(env: Record<string, string> = {}) {
    let printed = "";
    const child = Bun.spawn([...(await fromSources()), "serve", "--listen", "127.0.0.1:0"], {
      cwd: desk.cwd,
      env: { PATH: "", HOME: desk.cwd, ...env },
      terminal: {
        cols: 400,
        rows: 50,
        data(_, bytes) {
          printed += new TextDecoder().decode(bytes);
        },
      },
    });
    const runtime = join(desk.cwd, "gatehouse-data", "server.json");
    for (let tries = 0; tries < 600 && !printed.includes("Documentation: "); tries++) await Bun.sleep(50);
    return {
      url: (JSON.parse(readFileSync(runtime, "utf8")) as { url: string }).url,
      printed: () => printed,
      async stop() {
        child.kill("SIGTERM");
        await child.exited;
        child.terminal?.close();
      },
    };
  }

  test("prints a link on a terminal, which signs in with the printed token; later starts print none", async () => {
    const first = await serveOnTerminal();
    for (let tries = 0; tries < 600 && !first.printed().includes("Console: "); tries++) await Bun.sleep(50);
    const link = /Console: (\S+)/.exec(first.printed())?.[1] ?? "";
    const token = /gth_\w{49}/.exec(first.printed())?.[0] ?? "";
    expect(link).toMatch(LINK);
    const signedIn = await redeem(first, secretOf(link));
    expect(signedIn.status).toBe(201);
    const mine = await fetch(`${first.url}/v1/session`, { headers: { authorization: `Bearer ${token}` } });
    const { actor } = (await signedIn.json()) as { actor: string };
    expect(((await mine.json()) as { actor: string }).actor).toBe(actor);
    const seq = signedIn.headers.get("gatehouse-ledger");
    const entry = await fetch(`${first.url}/v1/ledger/${seq}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const { detail } = (await entry.json()) as { detail: Record<string, unknown> };
    expect([detail.by, detail.link_by, detail.link_seq]).toEqual(["link", "system", undefined]);
    await first.stop();
    const again = await serveOnTerminal();
    await again.stop();
    expect(again.printed()).toContain("Documentation: ");
    expect(again.printed()).not.toMatch(/Console: |gth[a-z]?_\w/);
  });

  test("prints a link with the machine's own address if public_url has a path, because the console is not below it", async () => {
    const server = await serveOnTerminal({ GATEHOUSE_PUBLIC_URL: "https://gate.example.org/gatehouse" });
    for (let tries = 0; tries < 600 && !server.printed().includes("Console: "); tries++) await Bun.sleep(50);
    await server.stop();
    expect(/Console: (\S+)/.exec(server.printed())?.[1] ?? "").toMatch(LINK);
  });

  test("prints no link without a terminal, where output is kept", async () => {
    const child = Bun.spawn([...(await fromSources()), "serve", "--listen", "127.0.0.1:0"], {
      cwd: desk.cwd,
      env: { PATH: "", HOME: desk.cwd },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const runtime = join(desk.cwd, "gatehouse-data", "server.json");
    for (let tries = 0; tries < 600 && !existsSync(runtime); tries++) await Bun.sleep(50);
    child.kill("SIGTERM");
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    await child.exited;
    expect(stdout).toBe("");
    expect(stderr).toContain("gatehouse is ready");
    expect(stderr).not.toMatch(/gth[a-z]?_\w|#link/);
  });
});
