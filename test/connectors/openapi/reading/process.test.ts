/** OpenAPI documents are read in separate processes with limits on memory and time. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { silentLog } from "../../../../src/base/log.ts";
import type { ApiDocumentRequest, ApiReading } from "../../../../src/connectors/openapi/reading/messages.ts";
import { API_DOCUMENTS } from "../../../../src/connectors/openapi/reading/protocol.ts";
import { readApi } from "../../../../src/connectors/openapi/reading/read-api.ts";
import { ApiReaders } from "../../../../src/connectors/openapi/reading/readers.ts";
import { READ_API_DOCUMENTS, readingCommand } from "../../../../src/reading/command.ts";
import { JobOverLimit } from "../../../../src/reading/job-errors.ts";
import { ReaderProcess } from "../../../../src/reading/reader.ts";
import { startGateway, type TestGateway } from "../../../support/gateway.ts";
import { documentOf, type FakeApi, listOf, sourceOf, startApi } from "../api.ts";

const MIB = 1024 * 1024;
const MAIN = Bun.pathToFileURL(join(import.meta.dir, "..", "..", "..", "..", "src", "main.ts"));
const FIXTURES = join(import.meta.dir, "..", "fixtures");
const MINUTES = 300_000;
const { signal } = new AbortController();

const processes: ReaderProcess<ApiDocumentRequest, ApiReading>[] = [];
function start(ceiling: number) {
  const reader = new ReaderProcess(readingCommand(MAIN, READ_API_DOCUMENTS, ceiling), API_DOCUMENTS);
  processes.push(reader);
  return reader;
}
afterEach(async () => {
  for (const reader of processes.splice(0)) {
    reader.end();
    await reader.ended();
  }
});

const request = (text: string, more: Partial<ApiDocumentRequest> = {}): ApiDocumentRequest => ({
  ...{ text, url: "http://api.example/doc", hasBase: false, reserved: null, secrets: [] },
  ...more,
});
const HEAD = "openapi: 3.0.0\ninfo: { title: a, version: '1' }\npaths: { /a: { get: { responses: {} } } }\n";
/** A valid document that takes the parser a long time. */
const slowYaml = () => `${HEAD}x-a: [${"!!str a,".repeat(60_000)}a]\n`;

describe("a document is abandoned, and its process is gone,", () => {
  test("if it takes more memory than allowed", async () => {
    const reader = start(200 * MIB);
    // Few members, which are counted before the document is parsed, and much text.
    const long = JSON.stringify({ ...documentOf({}), x: "\u6f22".repeat(20_000_000) });
    const reading = reader.read(request(long), MINUTES);
    await expect(reading).rejects.toThrow(new JobOverLimit("takes more than 200 MiB of memory"));
    await reader.ended();
  });

  test("if it exceeds its time limit", async () => {
    const reader = start(1024 * MIB);
    await expect(reader.read(request(slowYaml()), 1)).rejects.toThrow("took longer than 0.001 seconds");
    await reader.ended();
  });
});

test.each(["petstore-3.0.yaml", "petstore-3.1.json"])(
  "from %s the process produces the same as its reader",
  async (name) => {
    const text = await Bun.file(join(FIXTURES, name)).text();
    const asked = request(text, { secrets: ["a-secret-name"], reserved: { in: "query", name: "limit" } });
    const reader = start(1024 * MIB);
    const read = await reader.read(asked, MINUTES);
    expect(read).toEqual(await readApi(asked));
    expect(read).toMatchObject({ tools: expect.any(Array) });
    // The same process reads the next one.
    expect(await reader.read(request("openapi: 3.0.0"), MINUTES)).toEqual({
      fault:
        'the answer of the spec\'s URL is not an OpenAPI 3.0 or 3.1 document: its field "paths" is missing',
    });
  },
);

test("tools that exceed a connector's room are not listed", async () => {
  const description = "d".repeat(3_900);
  const names = Array.from({ length: 900 }, (_, at) => at);
  const paths = Object.fromEntries(
    names.map((at) => [`/p${at}`, { post: { description, ...bodyOf(`${description}${at}`) } }]),
  );
  const reading = await readApi(request(JSON.stringify({ ...documentOf({}), paths })));
  expect(reading).toEqual({ fault: expect.stringContaining("take more than 8388608 bytes") });

  function bodyOf(text: string) {
    const properties = { a: { description: text }, b: { description: text } };
    return { requestBody: { content: { "application/json": { schema: { type: "object", properties } } } } };
  }
});

test("a caller that leaves does not wait for the document", async () => {
  const readers = new ApiReaders(MAIN, silentLog);
  const leaving = new AbortController();
  const reading = readers.of(1)(request(slowYaml()), leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(reading).rejects.toThrow("gone");
  await readers.stop();
  await expect(readers.of(1)(request(HEAD), signal)).rejects.toMatchObject({ fault: "unreachable" });
});

describe("a document that has not changed", () => {
  test("is not read again; a changed one is", async () => {
    const api = startApi();
    let text = JSON.stringify(documentOf({ operationId: "first" }));
    api.answer(() => new Response(text));
    let reads = 0;
    const source = sourceOf(api.url, {
      readApi(asked) {
        reads += 1;
        return readApi(asked);
      },
    });
    const first = await source.list(signal);
    expect(await source.list(signal)).toBe(first);
    expect([reads, api.asked.length]).toEqual([1, 2]);
    text = JSON.stringify(documentOf({ operationId: "second" }));
    expect((await source.list(signal)).map(({ name }) => name)).toEqual(["second"]);
    expect(reads).toBe(2);
    await api.close();
  });
});

describe("while a document is read", () => {
  let gateway: TestGateway;
  let api: FakeApi;
  beforeEach(async () => {
    gateway = await startGateway();
    api = startApi();
  });
  afterEach(async () => {
    await gateway.stop();
    await api.close();
  });

  test("other calls are answered before it: it delays nobody", async () => {
    const asked = Promise.withResolvers<void>();
    api.answer(() => {
      asked.resolve();
      return new Response(slowYaml());
    });
    const order: string[] = [];
    const body = { name: "slow", kind: "openapi", spec: `${api.url}/doc`, base_url: api.url };
    const created = gateway.call("POST", "/v1/connectors", { body }).then(({ status }) => {
      order.push(`created ${status}`);
    });
    await asked.promise;
    for (let times = 0; times < 3; times++) {
      const { status } = await gateway.call("GET", "/v1/agents");
      order.push(`agents ${status}`);
    }
    await created;
    expect(order).toEqual(["agents 200", "agents 200", "agents 200", "created 201"]);
  });

  test("a document sent with the request is stored, and read again at a refresh", async () => {
    const spec = documentOf({ operationId: "list" });
    const create = { name: "sent", kind: "openapi", spec, base_url: api.url };
    expect((await gateway.call("POST", "/v1/connectors", { body: create })).status).toBe(201);
    const { body } = await gateway.call("POST", "/v1/connectors/sent/refresh");
    expect(body).toMatchObject({ status: "ready", tools: [{ name: "sent.list" }] });
    expect((await listOf(spec)).map(({ name }) => name)).toEqual(["list"]);
  });
});
