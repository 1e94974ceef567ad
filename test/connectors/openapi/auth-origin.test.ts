/** A connector's auth is sent only to the origin that it was authorised for, whatever its document says later. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../../../src/agents/index.ts";
import { ConnectorError } from "../../../src/connectors/source.ts";
import type { KeptTool } from "../../../src/connectors/tools/kept-tool.ts";
import { connect } from "../../mcp/support.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { documentOf, type FakeApi, refusal, type SourceOptions, sourceOf, startApi } from "./api.ts";

const TOKEN = "t0ken-of-the-connector";
const auth = { type: "bearer", token: TOKEN } as const;
const signal = new AbortController().signal;

let first: FakeApi;
let second: FakeApi;
beforeEach(() => {
  first = startApi();
  second = startApi();
});
afterEach(async () => {
  await first.close();
  await second.close();
});

/** A document with one operation, `getThings`, on these servers. */
function at(...urls: readonly string[]): JsonObject {
  return { ...documentOf({ operationId: "getThings" }), servers: urls.map((url) => ({ url })) };
}

/** The `Authorization` headers of the requests to an API. */
const credentials = (api: FakeApi) =>
  api.asked.filter(({ path }) => path.endsWith("/things")).map(({ headers }) => headers.authorization);

describe("a source", () => {
  async function callOf(spec: JsonObject, options: SourceOptions, given?: KeptTool) {
    const source = sourceOf(spec, { auth, ...options });
    const tool = given ?? (await source.list(signal))[0];
    if (!tool) throw new Error("it has one operation");
    return source.call(tool, {}, { signal, callId: "call_1" });
  }

  test.each([
    ["another host", "http://other.example", "http://things.example"],
    ["another port", "http://things.example:8080", "http://things.example"],
    ["another scheme", "http://things.example", "https://things.example"],
    ["a name with the same beginning", "http://things.example.evil.example", "http://things.example"],
  ])("refuses a document whose server is now at %s, and names both", async (_, now, before) => {
    const listing = sourceOf(at(`${now}/api`), { auth, authOrigin: before }).list(signal);
    expect(await refusal(listing)).toMatchObject({
      fault: "invalid_answer",
      message: `The connector shop: its document names a server at ${now} now, but its auth was authorised only for ${before}: to send it to the new one, remove the connector and create it again.`,
    });
  });

  test("sends nothing to a tool's server other than the pinned one", async () => {
    const [tool] = await sourceOf(at(second.url), { auth }).list(signal);
    await callOf(at(first.url), { authOrigin: first.url }, tool);
    expect(credentials(second)).toEqual([undefined]);
  });

  test("refuses calls with auth until it is known where the auth may be sent", async () => {
    const [tool] = await sourceOf(at(first.url), { auth }).list(signal);
    const { message } = await refusal(callOf(at(first.url), {}, tool));
    expect(message).toContain("must be refreshed before this call");
    expect(first.asked).toEqual([]);
  });

  test("pins the origin of the document's first server once, before a call can be made", async () => {
    const pinned: string[] = [];
    const pinOrigin = async (origin: string) => void pinned.push(origin);
    const source = sourceOf(at(`${first.url}/api`, second.url), { auth, pinOrigin });
    await source.list(signal);
    const [tool] = await source.list(signal);
    expect(pinned).toEqual([first.url]);
    if (tool) await source.call(tool, {}, { signal, callId: "call_1" });
    expect(credentials(first)).toEqual([`Bearer ${TOKEN}`]);
  });

  test("offers nothing if the pin cannot be stored, and calls carry no auth", async () => {
    const pinOrigin = () => Promise.reject(new ConnectorError("unavailable", "The connector is gone."));
    const source = sourceOf(at(first.url), { auth, pinOrigin });
    expect((await refusal(source.list(signal))).fault).toBe("unavailable");
    const [tool] = await sourceOf(at(first.url), { auth }).list(signal);
    if (!tool) throw new Error("it has one operation");
    await refusal(source.call(tool, {}, { signal, callId: "call_1" }));
    expect(first.asked).toEqual([]);
  });

  test("follows another path at the same origin", async () => {
    await callOf(at(`${first.url}/v2`), { authOrigin: first.url });
    expect(credentials(first)).toEqual([`Bearer ${TOKEN}`]);
  });

  test.each<readonly [what: string, options: () => SourceOptions]>([
    ["without auth: there is nothing to send elsewhere", () => ({ auth: null })],
    ["with base_url, which determines where calls go", () => ({ baseUrl: second.url })],
  ])("pins nothing %s", async (_, options) => {
    const pinned: string[] = [];
    const pinOrigin = async (origin: string) => void pinned.push(origin);
    await callOf(at(second.url), { ...options(), pinOrigin });
    expect(pinned).toEqual([]);
    expect(credentials(second)).toHaveLength(1);
  });
});

describe("a connector whose document is at a URL", () => {
  let dataDir: string;
  let gateway: TestGateway;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
    gateway = await startGateway({ dataDir });
  });
  afterEach(async () => {
    await gateway.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function restart(): Promise<void> {
    const { admin } = gateway;
    await gateway.stop();
    const again = await startGateway({ dataDir });
    gateway = {
      ...again,
      admin,
      call: (method, path, options) => again.call(method, path, { token: admin, ...options }),
    };
  }
  const create = (spec: string) =>
    gateway.call("POST", "/v1/connectors", { body: { name: "shop", kind: "openapi", spec, auth } });
  const refresh = async () => (await gateway.call("POST", "/v1/connectors/shop/refresh")).body;
  const call = async () => (await connect(gateway)).call("shop__getThings");

  function serve(document: () => JsonObject, port = 0) {
    return Bun.serve({ hostname: "127.0.0.1", port, fetch: () => Response.json(document()) });
  }

  test("keeps its secret to the authorised origin when the document names another server", async () => {
    let named = first.url;
    await using documents = serve(() => at(named));
    expect((await create(`http://127.0.0.1:${documents.port}/openapi.json`)).body.status).toBe("ready");
    await call();
    named = second.url;
    for (const step of ["at once", "after a restart"]) {
      const { status, error, tools } = await refresh();
      expect([step, status, tools.length]).toEqual([step, "unreachable", 1]);
      expect(error).toContain(`names a server at ${second.url} now`);
      expect(error).toContain(`authorised only for ${first.url}`);
      await call();
      await restart();
      await call();
    }
    expect(second.asked).toEqual([]);
    expect(new Set(credentials(first))).toEqual(new Set([`Bearer ${TOKEN}`]));
    named = first.url;
    expect((await refresh()).status).toBe("ready");
  });

  test("that could not be read at first is bound by the first version read, even after a restart", async () => {
    const port = await closedPort();
    expect((await create(`http://127.0.0.1:${port}/openapi.json`)).body.status).toBe("unreachable");
    let named = first.url;
    await using _documents = serve(() => at(named), port);
    expect((await refresh()).status).toBe("ready");
    await restart();
    named = second.url;
    expect((await refresh()).error).toContain(`authorised only for ${first.url}`);
    await call();
    expect(credentials(first)).toEqual([`Bearer ${TOKEN}`]);
    expect(second.asked).toEqual([]);
  });
});

/** A port on which nothing listens. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address ? address.port : 1;
}
