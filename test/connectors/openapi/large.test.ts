/** Documents of the size of GitHub's, and how operations that cannot become tools are reported. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { LargeDocuments } from "../../../src/connectors/openapi/large-documents.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { type LastingStore, lastingStore } from "../../support/lasting-store.ts";
import { documentOf, type FakeApi, sourceOf, startApi } from "./api.ts";

const MIB = 1024 * 1024;
const { signal } = new AbortController();
/** A valid document of this many bytes. */
const largeDocument = (bytes: number) =>
  JSON.stringify({ ...documentOf({ operationId: "list" }), x: "x".repeat(bytes) });

let api: FakeApi;
let gateway: TestGateway;
let store: LastingStore;
beforeAll(async () => {
  api = startApi();
  store = lastingStore();
  gateway = await startGateway(store.options);
});
afterAll(async () => {
  await gateway.stop();
  await store.remove();
  await api.close();
});

test("a document of 13 MiB and 1,100 operations, such as GitHub's, becomes 1,100 tools", async () => {
  const operations = Array.from({ length: 1_100 }, (_, at) => [
    `/things/${at}`,
    {
      get: {
        operationId: `things/get-${at}`,
        description: "What it does. ".repeat(20),
        responses: {
          200: {
            description: "d",
            content: {
              "application/json": { example: Array.from({ length: 380 }, () => "an example of an answer") },
            },
          },
        },
      },
    },
  ]);
  const text = JSON.stringify({ ...documentOf({}), paths: Object.fromEntries(operations) });
  expect(text.length).toBeGreaterThan(10 * MIB);
  api.answer(() => new Response(text));
  const body = { name: "github", kind: "openapi", spec: `${api.url}/doc`, base_url: api.url };
  const { status, body: made } = await gateway.call("POST", "/v1/connectors", { body });
  expect([status, made.status, made.error, made.tools?.length]).toEqual([201, "ready", undefined, 1_100]);
}, 60_000);

describe("operations that cannot be tools", () => {
  const pdf = { requestBody: { required: true, content: { "application/pdf": {} } } };
  const paths = (count: number) => ({
    "/things": { get: { operationId: "list", responses: {} } },
    ...Object.fromEntries(Array.from({ length: count }, (_, at) => [`/reports/${at}`, { post: pdf }])),
  });
  const spec = (count: number) => ({ ...documentOf({}), paths: paths(count) });

  test("are named with the reason in the connector's answers, even after a restart, until they can", async () => {
    const body = { name: "shop", kind: "openapi", spec: `${api.url}/shop`, base_url: api.url };
    api.answer(() => Response.json(spec(2)));
    const why = 'it requires a body of type "application/pdf", which is not supported';
    const error = `2 operations are not offered as tools: POST /reports/0: ${why}; POST /reports/1: ${why}.`;
    const shown = async () => {
      const { body: listed } = await gateway.call("GET", "/v1/connectors");
      const { status, error } = listed.data.find(({ name }: { name: string }) => name === "shop");
      return { status, error };
    };
    expect((await gateway.call("POST", "/v1/connectors", { body })).body).toMatchObject({
      status: "ready",
      error,
    });
    expect(await shown()).toEqual({ status: "ready", error });
    expect((await gateway.call("POST", "/v1/connectors/shop/refresh")).body).toMatchObject({
      status: "ready",
      error,
    });
    expect((await gateway.call("POST", "/v1/tools/shop.list/call", { body: {} })).status).toBe(200);
    expect(await shown()).toEqual({ status: "ready", error });
    await gateway.gateway.stop();
    const { admin } = gateway;
    gateway = await startGateway(store.options);
    expect(admin).not.toBe(gateway.admin);
    expect(await shown()).toEqual({ status: "ready", error });
    api.answer(() => Response.json(spec(0)));
    expect((await gateway.call("POST", "/v1/connectors/shop/refresh")).body.error).toBeUndefined();
  });

  test("are counted if there are too many to name", async () => {
    const source = sourceOf(spec(100));
    await source.list(signal);
    expect(source.omitted).toStartWith(
      "100 operations are not offered as tools: POST /reports/0: it requires",
    );
    expect(source.omitted).toMatch(/; and \d+ more\.$/);
    expect(source.omitted?.length).toBeLessThan(1_200);
  });
});

describe("large documents in memory", () => {
  test("are limited per workspace and in total; small ones are not counted", async () => {
    const large = new LargeDocuments();
    const began = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    let asked = 0;
    const list = (workspaceId: number, bytes = 9 * MIB) =>
      sourceOf(largeDocument(bytes), {
        large,
        workspaceId,
        baseUrl: api.url,
        async readApi() {
          asked += 1;
          if (asked === 2) began.resolve();
          await gate.promise;
          return { tools: [], server: null, leftOut: [], leftOutCount: 0 };
        },
      }).list(signal);
    const two = [list(1), list(1)];
    await began.promise;
    expect(large.open).toBe(2);
    await expect(list(1)).rejects.toThrow(
      "Too many large documents are being read now. Refresh the connector later.",
    );
    const others = [list(1, 1_000), list(2), list(3)];
    gate.resolve();
    await Promise.all([...two, ...others]);
    expect(large.open).toBe(0);
  });

  test("one of the workspace with the most is abandoned for a workspace that has none", async () => {
    const large = new LargeDocuments();
    const documents = [1, 1, 2, 2].map((workspaceId) => large.begin(workspaceId));
    for (const memory of documents) memory.grow(9 * MIB);
    const third = large.begin(3);
    third.grow(9 * MIB);
    expect(documents.map(({ signal }) => signal.aborted)).toEqual([true, false, false, false]);
    expect(large.open).toBe(4);
  });
});
