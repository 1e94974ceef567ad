/** Connectors and webhooks that lead back to this Gatehouse: they cause no growth and no endless writing. */
import { afterEach, describe, expect, test } from "bun:test";
import { VIA_HEADER, VIA_META } from "../../src/base/via.ts";
import { connect, hello, post, request } from "../mcp/support.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { dispatch, ended, ledger, until, yamlOf } from "../tasks/support.ts";

const OWN = "The URL leads to this Gatehouse itself.";
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(yaml = ""): Promise<TestGateway> {
  const gateway = await startGateway({ yaml });
  closing.push(() => gateway.stop());
  return gateway;
}

interface Proxy {
  readonly url: string;
  readonly paths: string[];
}

/** A reverse proxy in front of the gateway that can change requests in transit. */
function proxy(
  to: () => string,
  change: (headers: Headers, body: string) => string = (_, body) => body,
): Proxy {
  const paths: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(asked) {
      const { pathname } = new URL(asked.url);
      paths.push(pathname);
      const headers = new Headers(asked.headers);
      const body = change(headers, await asked.text());
      headers.delete("content-length");
      const answer = await fetch(to() + pathname, {
        method: asked.method,
        headers,
        ...(body === "" ? {} : { body }),
        signal: asked.signal,
      }).catch(() => new Response("the gateway has ended", { status: 502 }));
      const told = new Headers(answer.headers);
      for (const name of ["content-length", "content-encoding"]) told.delete(name);
      return new Response(answer.body, { status: answer.status, headers: told });
    },
  });
  closing.push(() => server.stop(true));
  return { url: `http://127.0.0.1:${server.port}`, paths };
}

const bearer = (gateway: TestGateway) => ({ Authorization: `Bearer ${gateway.admin}` });
const create = (gateway: TestGateway, name: string, body: object) =>
  gateway.call("POST", "/v1/connectors", { body: { name, ...body } });
const mcp = (gateway: TestGateway, url: string, type = "http") => ({
  kind: "mcp",
  transport: { type, url, headers: bearer(gateway) },
});
async function toolsOf(gateway: TestGateway, name: string): Promise<string[]> {
  const { body } = await gateway.call("GET", "/v1/connectors");
  const found = body.data.find((each: { name: string }) => each.name === name);
  return found.tools.map((tool: { name: string }) => tool.name).sort();
}
/** Entries that the loop itself wrote, not calls of the test. */
async function writtenByLoop(gateway: TestGateway): Promise<string[]> {
  const actions = (await ledger(gateway)).map(({ action }) => action);
  return actions.filter((action) =>
    ["session.open", "session.use", "tool.list", "auth.refused"].includes(action),
  );
}

describe("a connector to the address that this Gatehouse listens on is refused", () => {
  const SPEC = {
    openapi: "3.1.0",
    info: { title: "x", version: "1" },
    paths: { "/metrics": { get: { operationId: "metrics", responses: { "200": { description: "ok" } } } } },
  };
  test.each<readonly [string, (url: string, gateway: TestGateway) => object, string]>([
    ["as an MCP server", (url, gateway) => mcp(gateway, `${url}/mcp`), "/transport/url"],
    ["as an MCP server over SSE", (url, gateway) => mcp(gateway, `${url}/mcp/sse`, "sse"), "/transport/url"],
    ["as the base of an API", (url) => ({ kind: "openapi", spec: SPEC, base_url: url }), "/base_url"],
    ["as the location of a document", (url) => ({ kind: "openapi", spec: `${url}/openapi.json` }), "/spec"],
  ])("%s, by each of its names", async (_, body, path) => {
    const gateway = await start();
    const { port } = new URL(gateway.url);
    for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"]) {
      const answer = await create(gateway, "self", body(`http://${host}:${port}`, gateway));
      expect([answer.status, answer.body.errors]).toEqual([422, [{ path, message: OWN }]]);
    }
  });

  test("even if only the document names it", async () => {
    const gateway = await start();
    const spec = { ...SPEC, servers: [{ url: gateway.url }] };
    const made = await create(gateway, "self", { kind: "openapi", spec });
    expect(made.body.status).toBe("ready");
    const client = await connect(gateway);
    const answer = await client.call("self__metrics");
    expect([answer.isError, answer.content[0].text]).toEqual([true, `The connector self: ${OWN}`]);
  });
});

describe("a connector that leads back here through a proxy", () => {
  test("is refused at its handshake, gets no tools, and writes nothing", async () => {
    const gateway = await start();
    const front = proxy(() => gateway.url);
    const made = await create(gateway, "self", mcp(gateway, `${front.url}/mcp`));
    expect([made.body.status, made.body.tools]).toEqual(["unreachable", []]);
    expect(made.body.error).toStartWith("The connector self leads back to this Gatehouse.");
    expect(front.paths).not.toBeEmpty();
    await gateway.call("POST", "/v1/connectors/self/refresh");
    expect(await writtenByLoop(gateway)).toEqual([]);
  });

  test("is refused even if the proxy removes headers", async () => {
    const gateway = await start();
    const front = proxy(
      () => gateway.url,
      (headers, body) => {
        headers.delete(VIA_HEADER);
        return body;
      },
    );
    const made = await create(gateway, "self", mcp(gateway, `${front.url}/mcp`));
    expect([made.body.status, made.body.tools]).toEqual(["unreachable", []]);
    expect(await writtenByLoop(gateway)).toEqual([]);
  });

  test("gets no tools even from a server in between that does its own handshake", async () => {
    const gateway = await start();
    const front = proxy(
      () => gateway.url,
      (headers, body) => {
        headers.delete(VIA_HEADER);
        // A server that lists tools on its own behalf sends only its own mark.
        return body.replace(/"gatehouse\/via":\["[0-9a-f]+"\]/, '"gatehouse/via":["abcdefabcdef"]');
      },
    );
    const made = await create(gateway, "self", mcp(gateway, `${front.url}/mcp`));
    expect([made.body.status, made.body.tools]).toEqual(["ready", []]);
  });

  test("cannot have its mark removed by a proxy", async () => {
    const gateway = await start();
    const seen: (string | null)[] = [];
    const front = proxy(
      () => gateway.url,
      (headers, body) => {
        seen.push(headers.get("connection"), headers.get(VIA_HEADER));
        return body;
      },
    );
    const headers = { ...bearer(gateway), Connection: VIA_HEADER, "Gatehouse-Via": "0123456789abcdef" };
    const transport = { type: "http", url: `${front.url}/mcp`, headers };
    const made = await create(gateway, "self", { kind: "mcp", transport });
    expect(made.body.error).toStartWith("The connector self leads back to this Gatehouse.");
    expect(seen).not.toContain(VIA_HEADER);
    expect(seen).not.toContain("0123456789abcdef");
  });
});

test("a program that leads back here, as gatehouse mcp does, is refused because of its messages", async () => {
  const gateway = await start();
  const instance = await instanceOf(gateway);
  const said = {
    ...hello(),
    params: { ...Reflect.get(hello(), "params"), _meta: { [VIA_META]: [instance] } },
  };
  for (const body of [
    said,
    [said],
    request("tools/list", { _meta: { [VIA_META]: ["abcdefabcdef", instance] } }),
  ]) {
    const answer = await post(gateway, body);
    expect([answer.status, answer.last.code]).toEqual([508, "loop_detected"]);
  }
  expect(await writtenByLoop(gateway)).toEqual([]);
});

test("the Gatehouses named by a header and by a message are combined, and no hop is forgotten", async () => {
  const [gateway, next] = [await start(), await start()];
  const seen: string[] = [];
  const front = proxy(
    () => next.url,
    (_, body) => {
      seen.push(body);
      return body;
    },
  );
  await create(gateway, "next", mcp(next, `${front.url}/mcp`));
  const client = await connect(gateway);
  seen.length = 0;
  const params = {
    ...{ name: "next__time__now", arguments: {} },
    _meta: { [VIA_META]: ["abcdefabcdef", "bbbbbbbbbbbb"] },
  };
  const headers = { [VIA_HEADER]: "aaaaaaaaaaaa, abcdefabcdef" };
  const answer = await client.post(request("tools/call", params), { headers });
  expect(answer.last.result.isError).not.toBe(true);
  const passed = seen.filter((body) => body.includes("tools/call")).map((body) => JSON.parse(body));
  const way = ["aaaaaaaaaaaa", "abcdefabcdef", "bbbbbbbbbbbb", await instanceOf(gateway)];
  expect(passed).toMatchObject([{ params: { _meta: { [VIA_META]: way } } }]);
});

test("a batch that is too long is refused before its messages are inspected", async () => {
  const gateway = await start();
  const named = request("ping", { _meta: { [VIA_META]: [await instanceOf(gateway)] } });
  const answer = await post(gateway, Array(101).fill(named));
  expect([answer.status, answer.last.error.message]).toEqual([
    400,
    "The batch is too large: at most 100 messages are allowed.",
  ]);
  const longest = await post(gateway, Array(100).fill(named));
  expect([longest.status, longest.last.code]).toEqual([508, "loop_detected"]);
});

/** The gateway's instance, as all its requests carry it. */
async function instanceOf(gateway: TestGateway): Promise<string> {
  const { body } = await gateway.call("GET", "/v1/ledger/checkpoint");
  return /^gatehouse\/([0-9a-f]+)\//.exec(body)?.[1] ?? "";
}

test("no path answers a request that has passed here before, and none is recorded", async () => {
  const gateway = await start();
  const via = `abcdefabcdef, ${await instanceOf(gateway)}`;
  const before = (await ledger(gateway)).length;
  for (const path of ["/v1/agents", "/mcp", "/metrics", "/livez", "/nothing", "/openapi.json"]) {
    const answer = await gateway.call("GET", path, { headers: { [VIA_HEADER]: via } });
    expect([answer.status, answer.body.code]).toEqual([508, "loop_detected"]);
  }
  const after = (await ledger(gateway)).length;
  // At most one: the read of the ledger above.
  expect(after - before).toBeLessThanOrEqual(1);
});

describe("two Gatehouses that connect each other", () => {
  async function two() {
    const [a, b] = [await start(), await start()];
    expect((await create(a, "b", mcp(b, `${b.url}/mcp`))).body.status).toBe("ready");
    expect((await create(b, "a", mcp(a, `${a.url}/mcp`))).body.status).toBe("ready");
    return { a, b };
  }

  test("list each other's own tools, and never their own again", async () => {
    const { a, b } = await two();
    for (let round = 0; round < 4; round++) {
      await a.call("POST", "/v1/connectors/b/refresh");
      await b.call("POST", "/v1/connectors/a/refresh");
    }
    const builtin = ["time__now", "vault__read", "vault__search", "vault__write"];
    expect(await toolsOf(a, "b")).toEqual(builtin.map((name) => `b.${name}`));
    expect(await toolsOf(b, "a")).toEqual(builtin.map((name) => `a.${name}`));
  });

  test("know the path of a task's calls from its dispatch, so agents cannot call each other in a ring", async () => {
    const model = startFakeModel();
    closing.push(() => model.close());
    model.script("m", ({ body }, index) =>
      index === 0
        ? { toolCalls: [{ name: "a__time__now", arguments: {} }] }
        : { chunks: [JSON.stringify(body)] },
    );
    const a = await start();
    const b = await start(yamlOf(model.url, { tiers: { 1: ["m"] } }));
    await create(b, "a", mcp(a, `${a.url}/mcp`));
    await b.agent("worker");
    const headers = { [VIA_HEADER]: await instanceOf(a) };
    const id = await dispatch(b, { agent: "worker", tools: ["a.time__now"] }, { headers });
    const task = await ended(b, id);
    expect(task.tools_called).toMatchObject([{ tool: "a.time__now", status: "failed" }]);
    expect(task.output).toContain("leads back to this Gatehouse");
    expect((await ledger(a)).map(({ action }) => action)).not.toContain("tool.call");
  });

  test("call each other's tools, and refuse a call that came from themselves", async () => {
    const { a, b } = await two();
    const client = await connect(a);
    expect((await client.call("b__time__now")).isError).not.toBe(true);
    const headers = { [VIA_HEADER]: await instanceOf(a) };
    const returning = await b.call("POST", "/v1/tools/a.time__now/call", {
      headers,
      body: { arguments: {} },
    });
    expect(JSON.stringify(returning.body)).toContain("leads back to this Gatehouse");
    // The intent and the outcome of A's own call.
    expect((await ledger(a)).filter(({ action }) => action === "tool.call")).toHaveLength(2);
  });
});

describe("/metrics", () => {
  test("are not the operator's for a connector of another Gatehouse on this machine", async () => {
    const [a, b] = [await start(), await start()];
    const spec = {
      openapi: "3.1.0",
      info: { title: "x", version: "1" },
      paths: { "/metrics": { get: { operationId: "metrics", responses: { "200": { description: "ok" } } } } },
    };
    await create(b, "a", { kind: "openapi", spec, base_url: a.url });
    const client = await connect(b);
    const answer = await client.call("a__metrics");
    expect(answer.isError).toBe(true);
    expect(answer.content[0].text).toContain("401");
    expect(JSON.stringify(answer)).not.toContain("gatehouse_http_requests_total");
  });
});

test("a webhook that leads back here writes nothing of its own, however often it is called", async () => {
  let url = "";
  const front = proxy(() => url);
  const gateway = await start(
    `notify: { webhook: "${front.url}/v1/tasks" }\nledger: { checkpoint_every: 1, checkpoint_seconds: 1 }\n`,
  );
  url = gateway.url;
  await gateway.agent("worker");
  await until(() => front.paths.length > 0);
  await gateway.agent("another");
  expect(await writtenByLoop(gateway)).toEqual([]);
});
