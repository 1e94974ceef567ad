/** `/v1/connectors`: the contract's section 6, field by field. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { ledger, until } from "../tasks/support.ts";

let gateway: TestGateway;
let upstream: ScriptedMcp;
let made = 0;
beforeAll(async () => {
  gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }\n" });
  await gateway.agent("user");
  upstream = startScriptedMcp([
    {
      name: "search",
      description: "Searches.",
      inputSchema: { type: "object", properties: { q: { type: "string" } } },
    },
    { name: "drop", inputSchema: { type: "object" }, annotations: { destructiveHint: true } },
  ]);
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});

const create = (body: object, token?: string) =>
  gateway.call("POST", "/v1/connectors", { body, ...(token ? { token } : {}) });
const http = (url = upstream.url) => ({ type: "http", url });
const freshName = () => `up${++made}`;
const list = async (token?: string) =>
  (await gateway.call("GET", "/v1/connectors?limit=200", token ? { token } : {})).body.data;

/** A port on which nothing listens. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address ? address.port : 1;
}

describe("creating is refused, and adds nothing,", () => {
  const transport = { type: "stdio", command: "server" };
  test.each<readonly [string, object, string]>([
    ["for an invalid name", { name: "Up", kind: "mcp", transport }, "/name"],
    ["for a name with two underscores", { name: "a__b", kind: "mcp", transport }, "/name"],
    ["for a name of 25 characters", { name: "u".repeat(25), kind: "mcp", transport }, "/name"],
    ["for an unknown field", { name: "up", kind: "mcp", transport, secret: "x" }, "/secret"],
    ["without a transport", { name: "up", kind: "mcp" }, "/transport"],
    [
      "for a link-local address",
      { name: "up", kind: "mcp", transport: http("http://169.254.169.254/mcp") },
      "/transport/url",
    ],
    [
      "for the same address as IPv6",
      { name: "up", kind: "mcp", transport: http("http://[fe80::1]/mcp") },
      "/transport/url",
    ],
    [
      "for the same address as a number",
      { name: "up", kind: "mcp", transport: http("http://2852039166/mcp") },
      "/transport/url",
    ],
    ["for a file", { name: "up", kind: "mcp", transport: http("file:///etc/passwd") }, "/transport/url"],
    ["for an invalid URL", { name: "up", kind: "mcp", transport: http("mcp.example.org") }, "/transport/url"],
    [
      "for a document at such an address",
      { name: "up", kind: "openapi", spec: "http://169.254.169.254/" },
      "/spec",
    ],
    [
      "for a base at such an address",
      { name: "up", kind: "openapi", spec: "{}", base_url: "http://169.254.1.1" },
      "/base_url",
    ],
    ["for an invalid document", { name: "up", kind: "openapi", spec: { hello: "world" } }, "/spec"],
    ["for a document that cannot be read", { name: "up", kind: "openapi", spec: "{" }, "/spec"],
  ])("%s", async (_, body, path) => {
    const answer = await create(body);
    expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
    expect(answer.body.errors.map((error: { path: string }) => error.path)).toContain(path);
    expect((await list()).map(({ name }: { name: string }) => name)).not.toContain("up");
  });

  test.each(["vault", "time", "agents"])("for the builtin name %s", async (name) => {
    const answer = await create({ name, kind: "mcp", transport: http() });
    expect([answer.status, answer.body.code]).toEqual([409, "connector_exists"]);
  });

  test("for a name in use, even at the same moment, and the first stays", async () => {
    const name = freshName();
    const answers = await Promise.all([1, 2, 3].map(() => create({ name, kind: "mcp", transport: http() })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    const again = await create({ name, kind: "openapi", spec: "https://api.example.org/" });
    expect([again.status, again.body.code]).toEqual([409, "connector_exists"]);
    expect((await list()).find((each: { name: string }) => each.name === name).kind).toBe("mcp");
  });

  test("with the refusal in the ledger", async () => {
    await create({ name: "vault", kind: "mcp", transport: http() });
    const denied = (await ledger(gateway)).filter(({ action }) => action === "connector.authorise").at(-1);
    expect(denied).toMatchObject({
      outcome: "denied",
      code: "connector_exists",
      detail: { connector: "vault" },
    });
  });
});

describe("an unknown connector", () => {
  test.each(["none", "Up", "%00", "a__b", "__proto__", "x".repeat(500)])("%s answers 404", async (name) => {
    for (const [method, path] of [
      ["DELETE", `/v1/connectors/${name}`],
      ["POST", `/v1/connectors/${name}/refresh`],
    ] as const) {
      const answer = await gateway.call(method, path);
      expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
    }
  });

  test.each(["vault", "time"])("and %s, which is always there, answers 409", async (name) => {
    for (const [method, path] of [
      ["DELETE", `/v1/connectors/${name}`],
      ["POST", `/v1/connectors/${name}/refresh`],
    ] as const) {
      const answer = await gateway.call(method, path);
      expect([answer.status, answer.body.code]).toEqual([409, "connector_builtin"]);
    }
  });
});

test("a connector has the contract's fields, at its Location, and so have its tools", async () => {
  const name = freshName();
  const before = Date.now();
  const answer = await create({ name, kind: "mcp", transport: http() });
  expect([answer.status, answer.headers.get("location")]).toEqual([201, null]);
  const { authorised_at, authorised_by, ...rest } = answer.body;
  expect(authorised_by).toStartWith("token:tok_");
  expect(authorised_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(Date.parse(authorised_at)).toBeGreaterThanOrEqual(before);
  expect(rest).toEqual({
    name,
    kind: "mcp",
    status: "ready",
    scopes: ["*"],
    tools: [
      {
        name: `${name}.search`,
        description: "Searches.",
        input_schema: { type: "object", properties: { q: { type: "string" } } },
        destructive: false,
        approval: false,
      },
      {
        name: `${name}.drop`,
        description: "",
        input_schema: { type: "object" },
        destructive: true,
        approval: true,
      },
    ],
  });
  expect((await list()).find((each: { name: string }) => each.name === name)).toEqual(answer.body);
});

test("the built-in connectors always exist, with the contract's tools", async () => {
  const builtin = (await list()).filter(({ kind }: { kind: string }) => kind === "builtin");
  expect(builtin).toMatchObject([
    { name: "time", status: "ready", scopes: ["*"], authorised_by: "system" },
    { name: "vault", status: "ready", scopes: ["*"], authorised_by: "system" },
  ]);
  const tools = builtin.flatMap((each: { tools: { name: string }[] }) => each.tools.map(({ name }) => name));
  expect(tools.sort()).toEqual(["time.now", "vault.read", "vault.search", "vault.write"]);
});

test("they are listed by name, in pages", async () => {
  const names: string[] = [];
  let cursor = "";
  do {
    const { body } = await gateway.call("GET", `/v1/connectors?limit=1${cursor}`);
    names.push(...body.data.map(({ name }: { name: string }) => name));
    cursor = body.next_cursor === null ? "" : `&cursor=${body.next_cursor}`;
  } while (cursor !== "");
  expect(names).toEqual([...names].sort());
  expect(names).toEqual((await list()).map(({ name }: { name: string }) => name));
  for (const bad of ["x", "%00", Buffer.from("NO").toString("base64url")]) {
    expect((await gateway.call("GET", `/v1/connectors?cursor=${bad}`)).status).toBe(422);
  }
});

test("its scopes are stored once each, and apply to its tools", async () => {
  const name = freshName();
  const { body } = await create({ name, kind: "mcp", transport: http(), scopes: ["sea*", "sea*"] });
  expect(body.scopes).toEqual(["sea*"]);
  expect(body.tools.map((tool: { name: string }) => tool.name)).toEqual([`${name}.search`]);
});

describe("an upstream that cannot be reached", () => {
  test("is still created, reports it with its name, and affects no other", async () => {
    const name = freshName();
    const url = `http://127.0.0.1:${await closedPort()}/mcp`;
    const answer = await create({ name, kind: "mcp", transport: http(url) });
    expect([answer.status, answer.body.status, answer.body.tools]).toEqual([201, "unreachable", []]);
    expect(answer.body.error).toContain(name);
    const other = freshName();
    expect((await create({ name: other, kind: "mcp", transport: http() })).body.status).toBe("ready");
    const refreshed = await gateway.call("POST", `/v1/connectors/${name}/refresh`);
    expect([refreshed.status, refreshed.body.status]).toEqual([200, "unreachable"]);
    expect((await gateway.call("GET", "/readyz")).status).toBe(200);
  });

  test("because its program does not exist, or ends at once", async () => {
    for (const transport of [
      { type: "stdio", command: "no-such-program-anywhere" },
      { type: "stdio", command: process.execPath, args: ["-e", "process.exit(3)"] },
    ]) {
      const name = freshName();
      const { status, body } = await create({ name, kind: "mcp", transport });
      expect([status, body.status, body.tools]).toEqual([201, "unreachable", []]);
      expect(body.error).toContain(name);
    }
  });

  test("because its document is unavailable, has no tools until it is refreshed", async () => {
    const name = freshName();
    const spec = {
      openapi: "3.1.0",
      info: { title: "x", version: "1" },
      paths: { "/pets": { get: { operationId: "listPets", responses: { "200": { description: "ok" } } } } },
    };
    const port = await closedPort();
    const answer = await create({
      name,
      kind: "openapi",
      spec: `http://127.0.0.1:${port}/openapi.json`,
      base_url: "https://api.example.org",
    });
    expect([answer.status, answer.body.status, answer.body.tools]).toEqual([201, "unreachable", []]);
    const server = Bun.serve({ hostname: "127.0.0.1", port, fetch: () => Response.json(spec) });
    const refreshed = await gateway.call("POST", `/v1/connectors/${name}/refresh`);
    expect([refreshed.body.status, refreshed.body.tools.map((tool: { name: string }) => tool.name)]).toEqual([
      "ready",
      [`${name}.listPets`],
    ]);
    await server.stop(true);
  });
});

test("refreshing adopts the tools offered now, and the ledger records how many", async () => {
  const name = freshName();
  const own = startScriptedMcp(["one"]);
  await create({ name, kind: "mcp", transport: http(own.url) });
  own.list(["one", "two", "three"]);
  const answer = await gateway.call("POST", `/v1/connectors/${name}/refresh`);
  expect(answer.body.tools.map((tool: { name: string }) => tool.name)).toEqual([
    `${name}.one`,
    `${name}.two`,
    `${name}.three`,
  ]);
  const entry = await gateway.call("GET", `/v1/ledger/${answer.headers.get("gatehouse-ledger")}`);
  expect(entry.body).toMatchObject({
    action: "connector.refresh",
    outcome: "succeeded",
    detail: { connector: name, status: "ready", tools: 3, before: 1 },
  });
  await own.close();
});

test("deleting removes its tools at once; another connector may take its name", async () => {
  const name = freshName();
  await create({ name, kind: "mcp", transport: http() });
  const answer = await gateway.call("DELETE", `/v1/connectors/${name}`);
  expect([answer.status, answer.body]).toEqual([204, null]);
  const body = { agent: "user", prompt: "x", tools: [`${name}.search`] };
  expect((await gateway.call("POST", "/v1/tasks", { body })).body.code).toBe("unknown_tool");
  expect((await gateway.call("DELETE", `/v1/connectors/${name}`)).status).toBe(404);
  expect((await create({ name, kind: "mcp", transport: http() })).status).toBe(201);
});

test("deleting ends its series in the metrics", async () => {
  const name = freshName();
  await create({ name, kind: "mcp", transport: http() });
  await gateway.call("POST", `/v1/tools/${name}.search/call`, { body: { arguments: {} } });
  const series = async () => {
    const response = await fetch(`${gateway.url}/metrics`, {
      headers: { authorization: `Bearer ${gateway.admin}` },
    });
    return (await response.text()).split("\n").filter((line) => line.includes(`connector="${name}"`));
  };
  expect((await series()).length).toBeGreaterThan(3);
  await gateway.call("DELETE", `/v1/connectors/${name}`);
  expect(await series()).toEqual([]);
});

test("a connector removed while its tools are being listed does not come back", async () => {
  const name = freshName();
  const own = startScriptedMcp(["ghost"]);
  await create({ name, kind: "mcp", transport: http(own.url) });
  const release = own.holdLists();
  const lists = own.heard.filter((method) => method === "tools/list").length;
  const refreshing = gateway.call("POST", `/v1/connectors/${name}/refresh`);
  await until(() => own.heard.filter((method) => method === "tools/list").length > lists);
  expect((await gateway.call("DELETE", `/v1/connectors/${name}`)).status).toBe(204);
  release();
  expect((await refreshing).status).toBe(404);
  const body = { agent: "user", prompt: "x", tools: [`${name}.ghost`] };
  expect((await gateway.call("POST", "/v1/tasks", { body })).body.code).toBe("unknown_tool");
  await own.close();
});

test("a workspace has at most 200 connectors; removing one makes room, and other workspaces have their own limit", async () => {
  const token = await gateway.workspace("full");
  const spec = {
    openapi: "3.1.0",
    info: { title: "x", version: "1" },
    paths: { "/pets": { get: { operationId: "listPets", responses: { "200": { description: "ok" } } } } },
  };
  const api = (name: string) => ({ name, kind: "openapi", base_url: "https://api.example.org", spec });
  for (let count = 0; count < 200; count++) {
    expect((await create(api(`full${count}`), token)).status).toBe(201);
  }
  const refused = await create(api("more"), token);
  expect([refused.status, refused.body.code]).toEqual([409, "connector_limit"]);
  expect((await create(api(freshName()))).status).toBe(201);
  expect((await gateway.call("DELETE", "/v1/connectors/full0", { token })).status).toBe(204);
  expect((await create(api("more"), token)).status).toBe(201);
}, 20_000);

describe("a token that acts as an agent", () => {
  test("sees the tools that this agent may use, and whether its use of them needs approval", async () => {
    const name = freshName();
    await create({ name, kind: "mcp", transport: http() });
    await gateway.agent(`${name}-agent`, { tools: [`${name}.drop`], approvals: [] });
    const token = await gateway.token({ agent: `${name}-agent` });
    const shown = (await list(token)).find((each: { name: string }) => each.name === name);
    expect(shown.tools).toMatchObject([{ name: `${name}.drop`, destructive: true, approval: false }]);
    const vault = (await list(token)).find((each: { name: string }) => each.name === "vault");
    expect(vault.tools).toEqual([]);
  });
});

describe("a workspace's connectors", () => {
  test("are private: another workspace can neither see, refresh, remove nor call them, but may use the name", async () => {
    const name = freshName();
    await create({ name, kind: "mcp", transport: http() });
    const token = await gateway.workspace("neighbour");
    expect((await list(token)).map((each: { name: string }) => each.name)).toEqual(["time", "vault"]);
    expect((await gateway.call("POST", `/v1/connectors/${name}/refresh`, { token })).status).toBe(404);
    expect((await gateway.call("DELETE", `/v1/connectors/${name}`, { token })).status).toBe(404);
    const agent = { name: "a", owner: "x", memory_scope: "/" };
    await gateway.call("POST", "/v1/agents", { token, body: agent });
    const body = { agent: "a", prompt: "x", tools: [`${name}.search`] };
    expect((await gateway.call("POST", "/v1/tasks", { token, body })).body.code).toBe("unknown_tool");
    expect((await create({ name, kind: "mcp", transport: http() }, token)).status).toBe(201);
    expect((await gateway.call("DELETE", `/v1/connectors/${name}`, { token })).status).toBe(204);
    expect((await list()).map((each: { name: string }) => each.name)).toContain(name);
  });
});
