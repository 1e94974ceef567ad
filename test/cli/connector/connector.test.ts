// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders are what is tested.
/** Each command does the same whether or not a server is running on the data directory. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ServerProcess } from "../../support/process.ts";
import { type Desk, openDesk } from "../support.ts";

setDefaultTimeout(60_000);

const UPSTREAM = join(import.meta.dir, "..", "..", "support", "fake-mcp", "stdio.ts");
const PROGRAM = ["--", process.execPath, UPSTREAM, "plain"];
const NOWHERE = "http://127.0.0.1:1/mcp";

interface View {
  name: string;
  kind: string;
  status: string;
  scopes: string[];
  error?: string;
  tools: { name: string }[];
}

describe.each([
  ["with a running server", true],
  ["with no server", false],
])("%s", (_, running) => {
  let desk: Desk;
  let server: ServerProcess | undefined;

  beforeAll(async () => {
    desk = openDesk();
    if (running) server = await desk.serve();
  });
  afterAll(() => desk.clear());

  const list = async (...args: string[]) =>
    JSON.parse(await desk.out(["connector", "list", "--json", ...args])) as View[];
  const find = async (name: string) => (await list()).find((each) => each.name === name);

  test("a started MCP server: its tools appear, and the command ends everything that it started", async () => {
    const secret = "sk-very-secret-value";
    const ran = await desk.cli(
      ["connector", "add", "files", "--env", "SECRET", "--env", "KEY=k-${SECRET}", ...PROGRAM],
      { SECRET: secret },
    );
    expect(ran).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^files: ready, \d+ tools\n$/),
      stderr: "",
    });
    const files = await find("files");
    expect(files).toMatchObject({ kind: "mcp", status: "ready", scopes: ["*"] });
    expect(files?.tools.map(({ name }) => name)).toContain("files.echo");
    expect(JSON.stringify(files)).not.toContain(secret);
    const data = join(desk.cwd, "gatehouse-data");
    for (const file of readdirSync(data)) {
      expect({ file, holds: readFileSync(join(data, file)).includes(secret) }).toEqual({
        file,
        holds: false,
      });
    }
    if (server) expect(server.stderr()).not.toContain(secret);
  });

  test("an unreachable connector is added, reports why, and is retried by refresh, which exits with 1", async () => {
    const added = await desk.cli(["connector", "add", "away", "--url", NOWHERE, "--header", "X-Key: k"]);
    expect(added.code).toBe(0);
    expect(added.stdout).toMatch(/^away: unreachable, 0 tools: .*cannot be reached/);
    const refreshed = await desk.cli(["connector", "refresh", "away"]);
    expect(refreshed.code).toBe(1);
    expect(refreshed.stdout).toStartWith("away: unreachable");
  });

  test("an API described by a file, with its key in the environment and some of its tools", async () => {
    const document = {
      openapi: "3.1.0",
      info: { title: "Shop", version: "1" },
      servers: [{ url: "http://127.0.0.1:1" }],
      paths: {
        "/orders": { get: { operationId: "list_orders", responses: { 200: { description: "them" } } } },
        "/orders/{id}": {
          delete: {
            operationId: "delete_order",
            parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
            responses: { 204: { description: "gone" } },
          },
        },
      },
    };
    writeFileSync(join(desk.cwd, "shop.json"), JSON.stringify(document));
    const added = JSON.parse(
      await desk.out(
        [
          "connector",
          "add",
          "shop",
          "--openapi",
          "shop.json",
          "--bearer",
          "${KEY}",
          "--scope",
          "list_*",
          "--json",
        ],
        { KEY: "sk-shop" },
      ),
    ) as View;
    expect(added).toMatchObject({ kind: "openapi", status: "ready", scopes: ["list_*"] });
    expect(added.tools.map(({ name }) => name)).toEqual(["shop.list_orders"]);
    expect(JSON.stringify(added)).not.toContain("sk-shop");
  });

  test("list: a table with the built-in ones, problems below it, and the tools with their marks", async () => {
    const table = await desk.out(["connector", "list"]);
    expect(table).toStartWith("NAME");
    expect(table).toMatch(/^files +mcp +ready +\d+ +\* +user:\w+$/m);
    expect(table).toMatch(/^vault +builtin +ready +3 +\* +system$/m);
    expect(table).toMatch(/\n\naway: .*cannot be reached/);
    const tools = await desk.out(["connector", "list", "--tools"]);
    expect(tools).toMatch(/^TOOL +DESTRUCTIVE +DESCRIPTION$/m);
    expect(tools).toMatch(/^files\.echo +\S+/m);
    expect(tools).toMatch(/^time\.now +- +\S/m);
  });

  test("refresh lists the tools again; remove removes them, and exits with 1 the second time", async () => {
    expect(await desk.out(["connector", "refresh", "files"])).toMatch(/^files: ready, \d+ tools\n$/);
    expect(await desk.out(["connector", "remove", "files"])).toBe("");
    const again = await desk.cli(["connector", "remove", "files"]);
    expect(again).toMatchObject({ code: 1, stdout: "" });
    expect(again.stderr).toContain("files");
    expect(await find("files")).toBeUndefined();
  });

  test("connectors of a workspace are private to it", async () => {
    await desk.out(["workspace", "create", "acme"]);
    await desk.out(["connector", "add", "theirs", "--url", NOWHERE, "--workspace", "acme"]);
    expect((await list("--workspace", "acme")).map(({ name }) => name)).toEqual(["theirs", "time", "vault"]);
    expect(await find("theirs")).toBeUndefined();
  });

  test.each([
    ["an existing one", ["away", "--url", NOWHERE], 1, "away already exists"],
    ["a builtin connector's name", ["vault", "--url", NOWHERE], 1, "vault already exists"],
    ["a cloud's metadata", ["meta", "--url", "http://169.254.169.254/mcp"], 2, "--url: "],
    ["a header that HTTP cannot carry", ["odd", "--url", NOWHERE, "--header", "A: b\nc"], 2, "--header A: "],
    ["an invalid document", ["bad", "--openapi", "shop.txt"], 2, "--openapi: "],
    ["an invalid glob", ["odd", "--url", NOWHERE, "--scope", "a b"], 2, "--scope"],
  ])("refused: %s", async (_, args, code, message) => {
    writeFileSync(join(desk.cwd, "shop.txt"), "openapi: nine\n");
    const ran = await desk.cli(["connector", "add", ...args]);
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code, stdout: "" });
    expect(ran.stderr).toContain(message);
    expect(ran.stderr).not.toMatch(/\n\s+at /);
  });
});
