import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fromSources } from "../support/process.ts";
import { until } from "../support/until.ts";
import { AGENT, type Desk, openDesk, SECRET } from "./support.ts";

/** The files of a data directory that is not in use. */
const AT_REST = [
  "admin.token",
  "gatehouse.db",
  "gatehouse.lock",
  "ledger.key",
  "secrets.key",
  expect.stringMatching(/^vec0-[0-9a-f]{16}\.(so|dylib|dll)$/),
];

setDefaultTimeout(60_000);

let desk: Desk;
let data: string;

beforeEach(() => {
  desk = openDesk();
  data = join(desk.cwd, "gatehouse-data");
});

afterEach(() => desk.clear());

const adminToken = () => readFileSync(join(data, "admin.token"), "utf8").trim();

describe("the first admin token", () => {
  test("is written once for its owner only if there is no terminal, and works", async () => {
    const server = await desk.serve();
    expect(adminToken()).toMatch(SECRET);
    expect(statSync(join(data, "admin.token")).mode & 0o777).toBe(0o600);
    expect((await desk.call(server, adminToken(), "GET", "/v1/agents")).status).toBe(200);
    const first = adminToken();
    await server.end("SIGTERM");
    const again = await desk.serve();
    expect(adminToken()).toBe(first);
    expect(server.stderr() + again.stderr()).not.toContain(first);
  });

  test("is not written into a file that others may already read", async () => {
    mkdirSync(data);
    writeFileSync(join(data, "admin.token"), "old\n", { mode: 0o644 });
    await desk.serve();
    expect(adminToken()).toMatch(SECRET);
    expect(statSync(join(data, "admin.token")).mode & 0o777).toBe(0o600);
  });

  test("is left to the first serve by an earlier command", async () => {
    await desk.out(["workspace", "list"]);
    expect(JSON.parse(await desk.out(["token", "list", "--json"]))).toEqual([]);
    const server = await desk.serve();
    expect((await desk.call(server, adminToken(), "GET", "/v1/agents")).status).toBe(200);
  });

  test("is that of GATEHOUSE_ADMIN_TOKEN, which is stored nowhere in plain text", async () => {
    const secret = (await desk.out(["token", "secret"])).trim();
    const server = await desk.serve([], { GATEHOUSE_ADMIN_TOKEN: secret });
    expect((await desk.call(server, secret, "GET", "/v1/agents")).status).toBe(200);
    expect(readdirSync(data)).not.toContain("admin.token");
    for (const name of readdirSync(data)) expect(readFileSync(join(data, name)).includes(secret)).toBe(false);
    expect(readFileSync(`/proc/${server.pid}/cmdline`, "utf8")).not.toContain("gth_");
    expect(server.stderr()).not.toContain("gth_");
  });
});

test("every file of the data directory is private to its owner, including those of a copy with other modes", async () => {
  const modes = () =>
    Object.fromEntries(readdirSync(data).map((name) => [name, statSync(join(data, name)).mode & 0o077]));
  const server = await desk.serve();
  expect(statSync(data).mode & 0o777).toBe(0o700);
  expect(Object.keys(modes())).toContain("server.json");
  expect(Object.values(modes()).filter((bits) => bits !== 0)).toEqual([]);
  await server.end("SIGKILL");
  for (const name of readdirSync(data)) if (!/\.(key|so)$/.test(name)) chmodSync(join(data, name), 0o644);
  await desk.serve();
  expect(Object.values(modes()).filter((bits) => bits !== 0)).toEqual([]);
});

describe("serve is refused, with the next step and no stack,", () => {
  test("on a data directory that another server uses", async () => {
    await desk.serve();
    const second = await desk.cli(["serve", "--listen", "127.0.0.1:0"]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain("another process is using the data directory");
    expect(second.stderr).toContain("--data");
    expect(second.stderr).not.toMatch(/\n\s+at /);
  });

  test("on an occupied port, leaving the directory as usable as before", async () => {
    const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const refused = await desk.cli(["serve", "--listen", `127.0.0.1:${taken.port}`]);
    await taken.stop(true);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("cannot listen");
    expect(refused.stderr).toContain("--listen");
    expect(refused.stderr).not.toMatch(/\n\s+at /);
    expect(readdirSync(data).toSorted()).toEqual(AT_REST);
    const server = await desk.serve();
    expect((await desk.call(server, adminToken(), "GET", "/v1/agents")).status).toBe(200);
  });
});

describe("a server that is told to stop", () => {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "by %s ends with 0, leaves nothing open, and starts again with all its data",
    async (signal) => {
      const server = await desk.serve();
      const admin = adminToken();
      expect((await desk.call(server, admin, "POST", "/v1/agents", AGENT)).status).toBe(201);
      expect(await server.end(signal)).toBe(0);
      expect(readdirSync(data).toSorted()).toEqual(AT_REST);
      const again = await desk.serve();
      expect((await desk.call(again, admin, "GET", "/v1/agents/helper")).status).toBe(200);
      expect(await again.end("SIGTERM")).toBe(0);
    },
  );

  test("while calls come and go still exits with 0", async () => {
    const server = await desk.serve();
    const admin = adminToken();
    let busy = true;
    const answered = Array.from({ length: 8 }, () => 0);
    const callers = answered.map(async (_, caller) => {
      while (busy) {
        const answer = await desk.call(server, admin, "GET", "/v1/agents").catch(() => null);
        if (answer?.ok) answered[caller] = (answered[caller] ?? 0) + 1;
      }
    });
    await until(() => answered.every((count) => count >= 3));
    expect(await server.end("SIGTERM")).toBe(0);
    busy = false;
    await Promise.all(callers);
    expect(server.stderr()).not.toContain("unhandled");
  });
});

test("a killed server leaves nothing that blocks the next command or the next server", async () => {
  const server = await desk.serve();
  const admin = adminToken();
  await server.end("SIGKILL");
  expect(existsSync(join(data, "server.json"))).toBe(true);
  expect(JSON.parse(await desk.out(["token", "list", "--json"]))).toHaveLength(1);
  expect(existsSync(join(data, "server.json"))).toBe(false);
  const again = await desk.serve();
  expect((await desk.call(again, admin, "GET", "/v1/agents")).status).toBe(200);
});

test("the files that the server writes next to its data contain no secret that it was called with", async () => {
  const server = await desk.serve();
  const admin = adminToken();
  const issued = await desk.call(server, admin, "POST", "/v1/tokens", { name: "n", scopes: ["tasks:read"] });
  const { secret } = (await issued.json()) as { secret: string };
  await desk.call(server, `${secret.slice(0, -1)}x`, "GET", "/v1/tasks");
  await desk.call(server, secret, "GET", "/v1/agents");
  await server.end("SIGTERM");
  expect(server.stderr()).not.toMatch(/gth_[0-9A-Za-z]/);
  expect(readFileSync(join(data, "gatehouse.db")).includes(secret)).toBe(false);
});

test("a server told to stop while it starts exits with 0, and the next start finds nothing wrong", async () => {
  for (let round = 0; round < 3; round++) {
    const data = join(desk.cwd, `early-${round}`);
    const child = Bun.spawn([...(await fromSources()), "serve", "--listen", "127.0.0.1:0", "--data", data], {
      cwd: desk.cwd,
      env: { PATH: "", HOME: desk.cwd },
      stdio: ["ignore", "ignore", "ignore"],
    });
    // Creating the lock is a start's first step.
    while (!existsSync(join(data, "gatehouse.lock")) && child.exitCode === null) await Bun.sleep(1);
    child.kill("SIGTERM");
    await child.exited;
    expect([child.exitCode, child.signalCode]).toEqual([0, null]);
    const server = await desk.serve(["--data", data]);
    expect(await server.end("SIGTERM")).toBe(0);
    expect((await desk.cli(["ledger", "verify", "--data", data])).code).toBe(0);
  }
});
