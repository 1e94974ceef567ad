/**
 * docs/scaling.md as an operator follows it: its own lines, from a data directory to two servers behind nginx, and back.
 * Only addresses differ. And its settings for PgBouncer.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AGENT, type Desk, openDesk } from "../cli/support.ts";
import { readEvents } from "../support/events.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { unusedPort } from "../support/postgres/cluster.ts";
import { createDatabase, missingPostgres, SERVER, type TestDatabase } from "../support/postgres/database.ts";
import { fromSources } from "../support/process.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(120_000);

const PAGE = readFileSync(join(import.meta.dir, "../../docs/scaling.md"), "utf8");
/** Debian's packages install both where not every user looks. */
const PATHS = `${process.env.PATH}:/usr/sbin`;
const NGINX = Bun.which("nginx", { PATH: PATHS });
const PGBOUNCER = Bun.which("pgbouncer", { PATH: PATHS });
const PSQL = Bun.which("psql");
if (NGINX === null || PSQL === null)
  console.warn("TWO SERVERS BEHIND NGINX ARE NOT TESTED: apt-get install nginx postgresql-client");
if (PGBOUNCER === null) console.warn("PGBOUNCER IS NOT TESTED: apt-get install pgbouncer");

function block(language: string, start = ""): string {
  const found = [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "gm"))].map(
    ([, text = ""]) => text,
  );
  const wanted = found.find((text) => text.startsWith(start));
  if (wanted === undefined) throw new Error(`docs/scaling.md has no block that begins with ${start}`);
  return wanted;
}

describe.skipIf(missingPostgres !== undefined || NGINX === null || PSQL === null)("docs/scaling.md", () => {
  const desk: Desk = openDesk();
  const children: Bun.Subprocess[] = [];
  let replaced: readonly (readonly [string, string])[] = [];
  let server: URL;
  let name = "";

  beforeAll(async () => {
    const { superuserUrl, drop } = await createDatabase();
    await drop();
    server = new URL(process.env[SERVER] ?? superuserUrl);
    name = `scaling_${crypto.randomUUID().replaceAll("-", "").slice(0, 12)}`;
    const ports = [await unusedPort(), await unusedPort(), await unusedPort()];
    replaced = [
      ["127.0.0.1:8420", `127.0.0.1:${ports[0]}`],
      ["127.0.0.1:8421", `127.0.0.1:${ports[1]}`],
      ["127.0.0.1:8422", `127.0.0.1:${ports[2]}`],
      ["127.0.0.1:5432/gatehouse", `127.0.0.1:${server.port}/${name}`],
      ["//gatehouse:", `//${name}:`],
      ["ROLE gatehouse", `ROLE ${name}`],
      ["DATABASE gatehouse OWNER gatehouse", `DATABASE ${name} OWNER ${name}`],
    ];
    mkdirSync(join(desk.cwd, "bin"));
    const program = (await fromSources()).map((word) => `'${word}'`).join(" ");
    addProgram("gatehouse", `exec ${program} "$@"`);
    // As `sudo -u postgres psql`.
    addProgram("sudo", `shift 3; exec '${PSQL}' --quiet '${server.href}' "$@"`);
  });

  afterAll(async () => {
    for (const child of children.reverse()) {
      child.kill("SIGTERM");
      await child.exited;
    }
    const drop = ["-c", `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`, "-c", `DROP ROLE IF EXISTS ${name}`];
    Bun.spawnSync([PSQL ?? "", server.href, ...drop]);
    await desk.clear();
  });

  function addProgram(name: string, script: string): void {
    writeFileSync(join(desk.cwd, "bin", name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  const own = (text: string) => replaced.reduce((all, [from, to]) => all.replaceAll(from, to), text);

  /** Runs lines in one shell, with what earlier ones have exported. */
  async function shell(lines: string): Promise<string> {
    const exported = "if [ -e exported ]; then . ./exported; fi";
    const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", `${exported}\n${own(lines)}`], {
      cwd: desk.cwd,
      env: { PATH: `${join(desk.cwd, "bin")}:${process.env.PATH}`, HOME: desk.cwd },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) throw new Error(`${lines}\nended with ${code}: ${stdout}${stderr}`);
    return stdout;
  }

  test("leads from a data directory to two servers behind nginx, and back", async () => {
    await using model = await startModel();
    mkdirSync(join(desk.cwd, "gatehouse-data"), { mode: 0o700 });
    writeFileSync(join(desk.cwd, "gatehouse-data", "gatehouse.yaml"), model.yaml);
    const single = await desk.serve();
    const admin = readFileSync(join(desk.cwd, "gatehouse-data", "admin.token"), "utf8").trim();
    expect((await desk.call(single, admin, "POST", "/v1/agents", AGENT)).status).toBe(201);
    expect(await single.end("SIGTERM")).toBe(0);

    await shell(block("sh", "sudo"));
    // What an operator exports stays in the shell.
    const exports = block("sh", "export");
    await shell(`${exports}declare -p GATEHOUSE_STORE GATEHOUSE_MASTER_KEY > exported`);
    expect(await shell(block("sh", "gatehouse store copy --data"))).toContain("Copied and verified");

    for (const line of block("sh", "gatehouse serve").trim().split("\n")) {
      const dir = /--data (\S+)/.exec(line)?.[1] ?? "";
      mkdirSync(join(desk.cwd, dir), { mode: 0o700 });
      writeFileSync(join(desk.cwd, dir, "gatehouse.yaml"), model.yaml);
      children.push(await startInShell(line.replace(/^gatehouse (.*) &$/, "$1")));
      await until(() => existsSync(join(desk.cwd, dir, "server.json")));
    }
    children.push(startNginx(own(block("nginx"))));
    const url = own("http://127.0.0.1:8420");
    const call = (path: string, init: RequestInit = {}) =>
      fetch(url + path, {
        ...init,
        headers: { authorization: `Bearer ${admin}`, "content-type": "application/json", ...init.headers },
      });
    await until(async () => (await call("/readyz").catch(() => null))?.status === 200);
    const printed = await shell(block("sh", "gatehouse nodes"));
    expect(printed.match(/^node_/gm)).toHaveLength(2);
    expect(printed).toContain('{"status":"ok"}');

    // Each connection goes to the next server, and a stream arrives as it is sent.
    const seqs: number[] = [];
    for (let at = 0; at < 6; at++)
      seqs.push(Number((await call("/v1/agents")).headers.get("gatehouse-ledger")));
    expect(seqs).toEqual(seqs.map((_, at) => (seqs[0] ?? 0) + at));
    const streamed = await call("/v1/tasks?stream=true", {
      method: "POST",
      body: JSON.stringify({ agent: "helper", prompt: "Say it slowly." }),
    });
    const arrivals: number[] = [];
    for await (const { event } of readEvents(streamed))
      if (event === "output.delta") arrivals.push(performance.now());
    expect(arrivals).toHaveLength(4);
    expect((arrivals.at(-1) ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThan(400);

    const nginx = children.pop();
    for (const child of [nginx, ...children.splice(0)]) {
      child?.kill("SIGTERM");
      expect(await child?.exited).toBe(0);
    }
    const back = await shell(block("sh", "gatehouse store copy --from"));
    expect(back).toContain("Copied and verified");
    expect(back).toMatch(/holds/i);
  });

  async function startInShell(args: string): Promise<Bun.Subprocess> {
    const exported = readFileSync(join(desk.cwd, "exported"), "utf8");
    const env = Object.fromEntries(
      [...exported.matchAll(/^declare -x (\w+)="(.*)"$/gm)].map(([, name = "", value = ""]) => [name, value]),
    );
    return Bun.spawn([...(await fromSources()), ...own(args).split(" ")], {
      cwd: desk.cwd,
      env: { PATH: "", HOME: desk.cwd, ...env },
      stdio: ["ignore", "ignore", "ignore"],
    });
  }

  function startNginx(site: string): Bun.Subprocess {
    const home = join(desk.cwd, "nginx");
    mkdirSync(join(home, "logs"), { recursive: true });
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${home}/${name};`,
    );
    writeFileSync(
      join(home, "nginx.conf"),
      `daemon off; pid ${home}/pid; error_log ${home}/logs/error.log;${process.getuid?.() === 0 ? " user root;" : ""}
events {}
http { access_log off; ${temporary.join(" ")}\n${site}}\n`,
    );
    return Bun.spawn([NGINX ?? "", "-p", home, "-c", join(home, "nginx.conf")], {
      stdio: ["ignore", "ignore", "ignore"],
    });
  }

  async function startModel() {
    const model = startFakeModel({ fallback: { chunks: ["One ", "two ", "three ", "four"], delayMs: 200 } });
    return {
      yaml: `providers: { fake: { kind: openai-compatible, base_url: "${model.url}" } }\ntiers: { 1: { models: [fake/slow] } }\n`,
      [Symbol.asyncDispose]: () => model.close(),
    };
  }
});

describe.skipIf(missingPostgres !== undefined || PGBOUNCER === null)(
  "behind PgBouncer in transaction mode",
  () => {
    const desk: Desk = openDesk();
    let database: TestDatabase;
    let pooler: Bun.Subprocess;
    let env: Record<string, string> = {};

    beforeAll(async () => {
      database = await createDatabase();
      const direct = new URL(database.url);
      const port = await unusedPort();
      const userlist = join(desk.cwd, "userlist.txt");
      writeFileSync(userlist, `"${direct.username}" "${direct.password}"\n`);
      const settings = block("ini")
        .replace(
          "gatehouse = host=127.0.0.1 port=5432",
          `${direct.pathname.slice(1)} = host=127.0.0.1 port=${direct.port}`,
        )
        .replace("6432", String(port))
        .replace("/etc/pgbouncer/userlist.txt", userlist);
      writeFileSync(join(desk.cwd, "pgbouncer.ini"), settings);
      // It refuses to run as root.
      const user = process.getuid?.() === 0 ? ["setpriv", "--reuid=65534", "--clear-groups", "--"] : [];
      Bun.spawnSync(["chmod", "-R", "a+rX", desk.cwd]);
      pooler = Bun.spawn([...user, PGBOUNCER ?? "", join(desk.cwd, "pgbouncer.ini")], {
        stdio: ["ignore", "ignore", "ignore"],
      });
      const pooled = new URL(direct);
      pooled.port = String(port);
      env = {
        GATEHOUSE_STORE: pooled.href,
        GATEHOUSE_STORE_LISTEN: direct.href,
        GATEHOUSE_MASTER_KEY: "7".repeat(64),
      };
    });

    afterAll(async () => {
      await desk.clear();
      pooler.kill("SIGTERM");
      await pooler.exited;
      await database.drop();
    });

    test("two servers work, and hear of each other", async () => {
      const first = await desk.serve(["--data", "a"], env);
      const admin = readFileSync(join(desk.cwd, "a", "admin.token"), "utf8").trim();
      const second = await desk.serve(["--data", "b"], env);
      expect((await desk.call(first, admin, "POST", "/v1/agents", AGENT)).status).toBe(201);
      for (const server of [first, second]) {
        const task = await desk.call(server, admin, "POST", "/v1/tasks?stream=true", {
          agent: "helper",
          prompt: "Hello.",
        });
        expect(await task.text()).toContain('"status":"succeeded"');
      }
      const nodes = await desk.call(second, admin, "GET", "/v1/nodes");
      expect(((await nodes.json()) as { data: unknown[] }).data).toHaveLength(2);
      const seqs: number[] = [];
      for (let at = 0; at < 20; at++) {
        const { headers } = await desk.call(at % 2 === 0 ? first : second, admin, "GET", "/v1/agents");
        seqs.push(Number(headers.get("gatehouse-ledger")));
      }
      expect(seqs).toEqual(seqs.map((_, at) => (seqs[0] ?? 0) + at));
      // Through the pooler, and nothing but messages past it.
      const sessions = await database.query<{ query: string }>(
        "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'gatehouse'",
      );
      expect(sessions.length).toBeGreaterThan(0);
      for (const server of [first, second]) {
        expect(server.stderr()).not.toMatch(/"level":"(warn|error)"/);
        expect(await server.end("SIGTERM")).toBe(0);
      }
    });
  },
);
