/** Each command does the same whether or not a server is running on the data directory. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ServerProcess } from "../support/process.ts";
import { AGENT, type Desk, openDesk, SECRET } from "./support.ts";

setDefaultTimeout(60_000);

describe.each([
  ["with a running server", true],
  ["with no server", false],
])("%s", (_, running) => {
  let desk: Desk;
  let server: ServerProcess | undefined;
  let admin: string;

  beforeAll(async () => {
    desk = openDesk();
    admin = (await desk.out(["token", "create", "--name", "boss", "--scope", "admin"])).trim();
    // Agents are created over HTTP, so a server runs briefly in either case.
    const first = await desk.serve();
    const made = await desk.call(first, admin, "POST", "/v1/agents", AGENT);
    expect(made.status).toBe(201);
    if (running) server = first;
    else expect(await first.end("SIGTERM")).toBe(0);
  });

  afterAll(() => desk.clear());

  interface Listed {
    id: string;
    name: string;
    agent: string | null;
    scopes: string[];
  }
  const tokens = async (...args: string[]) =>
    JSON.parse(await desk.out(["token", "list", "--json", ...args])) as Listed[];

  /** Whether a secret is accepted by the running server, or else by one started for the purpose. */
  async function opens(secret: string): Promise<boolean> {
    const asked = server ?? (await desk.serve());
    const { status } = await desk.call(asked, secret, "GET", "/v1/tasks");
    if (asked !== server) await asked.end("SIGTERM");
    return status === 200;
  }

  test("token create prints only the secret, which works for its scopes", async () => {
    const made = await desk.cli(["token", "create", "--name", "ci", "--agent", "helper", "--expires", "90d"]);
    expect(made.stdout).toMatch(/^gth_[0-9A-Za-z]{49}\n$/);
    expect(made.stderr).toBe("");
    expect(await opens(made.stdout.trim())).toBe(true);
    const listed = (await tokens()).find((token) => token.name === "ci");
    expect(listed).toMatchObject({
      agent: "helper",
      scopes: ["tasks:read", "tasks:write", "vault:read", "connectors:read", "models:call", "tools:*"],
    });
    expect(JSON.stringify(listed)).not.toContain("gth_");
  });

  test("token list shows people a table, newest first, and no secret", async () => {
    const shown = await desk.out(["token", "list"]);
    expect(shown).toStartWith("ID");
    expect(shown).toMatch(/tok_[0-9a-z]{26}\s+boss\s+-\s+admin\s+never/);
    expect(shown).not.toContain("gth_");
  });

  test("token rotate prints only the new secret, and ends the old one", async () => {
    const old = (await desk.out(["token", "create", "--name", "turned", "--scope", "tasks:read"])).trim();
    const id = (await tokens()).find((token) => token.name === "turned")?.id ?? "";
    const next = await desk.out(["token", "rotate", id]);
    expect(next.trimEnd()).toMatch(SECRET);
    expect([await opens(old), await opens(next.trim())]).toEqual([false, true]);
  });

  test("token revoke prints nothing, ends the token, and exits with 1 the second time", async () => {
    const made = (
      await desk.out(["token", "create", "--name", "ended", "--scope", "tasks:read", "--json"])
    ).trim();
    const { id, secret } = JSON.parse(made) as { id: string; secret: string };
    expect(await desk.out(["token", "revoke", id])).toBe("");
    expect((await desk.cli(["token", "revoke", id])).code).toBe(1);
    expect((await tokens()).map((token) => token.id)).not.toContain(id);
    expect(await opens(secret)).toBe(false);
  });

  test("workspace create prints its name; its tokens are its own", async () => {
    expect(await desk.out(["workspace", "create", "acme"])).toBe("acme\n");
    expect((await desk.cli(["workspace", "create", "acme"])).code).toBe(1);
    const names = JSON.parse(await desk.out(["workspace", "list", "--json"])) as { name: string }[];
    expect(names.map((each) => each.name)).toEqual(["acme", "default"]);
    expect(await desk.out(["workspace", "list"])).toMatch(/^NAME\s+CREATED\s+STATUS\nacme\s+20/);
    await desk.out(["token", "create", "--name", "theirs", "--scope", "admin", "--workspace", "acme"]);
    expect((await tokens("--workspace", "acme")).map((token) => token.name)).toEqual(["theirs"]);
    expect((await tokens()).map((token) => token.name)).not.toContain("theirs");
  });

  test("task run streams the answer to standard output, and other events elsewhere", async () => {
    const ran = await desk.cli([
      "task",
      "run",
      "--agent",
      "helper",
      "--tool",
      "time.now",
      "What time is it?",
    ]);
    expect(ran.code).toBe(0);
    expect(ran.stdout).toContain("time.now answered");
    expect(ran.stdout).toEndWith("\n");
    expect(ran.stderr).toBe("[calling time.now]\n");
  });

  test("task run --json prints each event as a line, the whole task last", async () => {
    const lines = (await desk.out(["task", "run", "--agent", "helper", "--json", "Hello."]))
      .trim()
      .split("\n");
    const events = lines.map(
      (line) => JSON.parse(line) as { id: number; event: string; data: { status?: string } },
    );
    expect(events.map((event) => event.id)).toEqual(events.map((_, index) => index + 1));
    expect(events[0]?.event).toBe("task.created");
    expect(events.at(-1)).toMatchObject({ event: "task.finished", data: { status: "succeeded" } });
  });

  test("several commands at once on one directory all succeed", async () => {
    const made = await Promise.all(
      [1, 2, 3, 4].map((n) => desk.cli(["token", "create", "--name", `p${n}`, "--scope", "tasks:read"])),
    );
    expect(made.map((ran) => ran.code)).toEqual([0, 0, 0, 0]);
    const names = (await tokens()).map((token) => token.name);
    expect(["p1", "p2", "p3", "p4"].filter((name) => !names.includes(name))).toEqual([]);
  });

  test("a proxy in the environment sees none of the traffic", async () => {
    const seen: string[] = [];
    const proxy = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        seen.push(`${request.url} ${request.headers.get("authorization")}`);
        return new Response("no", { status: 502 });
      },
    });
    const url = `http://127.0.0.1:${proxy.port}`;
    const ran = await desk.cli(["workspace", "list"], { HTTP_PROXY: url, http_proxy: url, ALL_PROXY: url });
    await proxy.stop(true);
    expect(seen.filter((line) => line.includes("gth_"))).toEqual([]);
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: "" });
  });

  test("everything in the data directory is accessible only to its owner", () => {
    const data = join(desk.cwd, "gatehouse-data");
    for (const path of [data, ...readdirSync(data).map((name) => join(data, name))]) {
      expect(`${path} ${(statSync(path).mode & 0o077).toString(8)}`).toBe(`${path} 0`);
    }
  });

  test("each is in the ledger, with the person who did it", async () => {
    const asked = server ?? (await desk.serve());
    const answer = await desk.call(asked, admin, "GET", "/v1/ledger?action=token.issue&limit=200");
    const { data } = (await answer.json()) as { data: { actor: string; channel: string }[] };
    if (asked !== server) await asked.end("SIGTERM");
    // `system` issued the token of the first start; the actor of every command has a name.
    expect(data.map((entry) => entry.actor)).toContainEqual(expect.stringMatching(/^user:\w+$/));
    expect(data.filter((entry) => !/^(user:\w+|system)$/.test(entry.actor))).toEqual([]);
  });
});
