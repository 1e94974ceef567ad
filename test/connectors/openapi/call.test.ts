import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/agents/index.ts";
import type { OpenApiAuth } from "../../../src/connectors/definition/definition.ts";
import { keepTool } from "../../../src/connectors/tools/kept-tool.ts";
import { FakeClock } from "../../support/clock.ts";
import { callOne, documentOf, type FakeApi, refusal, sourceOf, startApi, textOf } from "./api.ts";

let api: FakeApi;
beforeAll(() => {
  api = startApi();
});
afterAll(() => api.close());
beforeEach(() => api.answer(() => Response.json({ ok: true })));

const last = () => {
  const asked = api.asked.at(-1);
  if (!asked) throw new Error("nothing was asked");
  return asked;
};
const call = (
  operation: JsonObject,
  input: JsonObject,
  options: Parameters<typeof callOne>[2] = {},
  path?: string,
) => callOne(documentOf(operation, path, "post"), input, { baseUrl: `${api.url}/v1`, ...options });
const parameter = (name: string, place: string, more: JsonObject = {}) => ({
  name,
  in: place,
  schema: {},
  ...(place === "path" ? { required: true } : {}),
  ...more,
});

describe("nothing is sent, and the answer explains why", () => {
  const PATH = "/things/{id}";
  const inPath = { parameters: [parameter("id", "path")] };
  test.each<readonly [what: string, operation: JsonObject, input: JsonObject, says: string]>([
    ["a step up", inPath, { id: ".." }, 'the argument "id" must not be empty, "." or ".."'],
    ["nothing in the path", inPath, { id: "" }, 'the argument "id" must not be empty'],
    ["no argument for the path", inPath, {}, 'the argument "id" is missing'],
    ["an inherited property", { parameters: [] }, {}, 'the argument "id" is missing'],
    ["half a character", inPath, { id: "\ud800" }, "not valid Unicode"],
    ["a URL that is too long", inPath, { id: "x".repeat(20_000) }, "longer than 16000 characters"],
    [
      "two lines in a header",
      { parameters: [parameter("X-A", "header")] },
      { id: "1", "X-A": "a\r\nAuthorization: b" },
      'the argument "X-A" must be one line of ASCII',
    ],
    [
      "invalid base64",
      { requestBody: { content: { "application/octet-stream": {} } } },
      { id: "1", body: "no base64!" },
      "body must be base64",
    ],
    [
      "a form that is a list",
      { requestBody: { content: { "application/x-www-form-urlencoded": {} } } },
      { id: "1", body: [1] },
      "body must be an object",
    ],
  ])("%s", async (_, operation, input, says) => {
    const before = api.asked.length;
    const answer = await call(operation, input, {}, PATH);
    expect(answer.isError).toBe(true);
    expect(textOf(answer)).toStartWith("Nothing was sent: ");
    expect(textOf(answer)).toContain(says);
    expect(api.asked).toHaveLength(before);
  });
});

test("parameters are put in their places", async () => {
  const parameters = [
    parameter("id", "path"),
    parameter("q", "query"),
    parameter("none", "query"),
    parameter("filter", "query", { style: "deepObject" }),
    parameter("json", "query", { content: { "application/json": { schema: {} } } }),
    parameter("X-List", "header"),
    parameter("session", "cookie"),
    parameter("id", "query"),
  ];
  const input = {
    id: "a/b",
    q: ["x y", 1],
    none: null,
    filter: { a: "b" },
    json: { c: ["&"] },
    "X-List": ["a", "b"],
    session: "s;t",
    id_query: false,
  };
  await call({ parameters }, input, {}, "/things/{id}/{more}");
  // The document does not describe {more}, but it is still a required argument, and it is missing here.
  expect(api.asked).toHaveLength(0);
  await call({ parameters }, { ...input, more: "m" }, {}, "/things/{id}/{more}");
  const asked = last();
  expect(asked.method).toBe("POST");
  expect(asked.path).toBe("/v1/things/a%2Fb/m");
  expect(asked.query).toBe("q=x%20y&q=1&filter%5Ba%5D=b&json=%7B%22c%22%3A%5B%22%26%22%5D%7D&id=false");
  expect(asked.headers).toMatchObject({ "x-list": "a,b", cookie: "session=s%3Bt" });
});

describe("a body in the operation's first type that can be written", () => {
  const withBody = (content: JsonObject) => ({ requestBody: { required: true, content } });
  test.each<readonly [what: string, content: JsonObject, body: unknown, type: string, sent: string]>([
    ["JSON", { "application/json": {} }, { a: [1, null] }, "application/json", '{"a":[1,null]}'],
    ["JSON of null", { "application/json": {} }, null, "application/json", "null"],
    ["its own JSON", { "application/xml": {}, "application/x.a+json": {} }, 1, "application/x.a+json", "1"],
    ["anything", { "*/*": {} }, "x", "application/json", '"x"'],
    ["text", { "text/plain": {} }, "é", "text/plain; charset=utf-8", "é"],
    ["bytes", { "application/octet-stream": {} }, "aGVsbG8=", "application/octet-stream", "hello"],
    [
      "a form",
      { "application/x-www-form-urlencoded": { encoding: { deep: { style: "deepObject" } } } },
      { a: "x y&", list: [1, 2], object: { b: 1 }, deep: { c: "d" }, none: null },
      "application/x-www-form-urlencoded",
      "a=x%20y%26&list=1&list=2&object=%7B%22b%22%3A1%7D&deep%5Bc%5D=d",
    ],
  ])("%s", async (_, content, body, type, sent) => {
    await call(withBody(content), { body } as JsonObject);
    expect(last().headers["content-type"]).toBe(type);
    expect(last().body).toBe(sent);
  });

  test("a form of several parts", async () => {
    const schema = {
      properties: {
        file: { type: "string", format: "binary" },
        files: { type: "array", items: { format: "binary" } },
      },
    };
    const encoding = { file: { contentType: "image/png" } };
    await call(withBody({ "multipart/form-data": { schema, encoding } }), {
      body: {
        file: "iVBORw==",
        files: ["AA==", "AQ=="],
        note: "a\r\nb",
        list: [1, 2],
        meta: { a: 1 },
        'x"\r\ny: z': "n",
      },
    });
    const { form } = last();
    const file = form?.get("file");
    if (!(file instanceof Blob)) throw new Error("file is not a file");
    expect(await file.bytes()).toEqual(new Uint8Array([0x89, 0x50, 0x4e, 0x47]));
    expect(form?.getAll("files")).toHaveLength(2);
    expect(form?.get("note")).toBe("a\r\nb");
    expect(form?.getAll("list")).toEqual(["1", "2"]);
    expect(form?.get("meta")).toBe('{"a":1}');
    expect(last().body).toContain('name="file"; filename="file"\r\nContent-Type: image/png\r\n\r\n');
    expect(last().body).toContain('name="meta"\r\nContent-Type: application/json\r\n\r\n{"a":1}\r\n');
    expect(last().body).toContain('name="x%22%0D%0Ay: z"\r\n\r\nn\r\n');
  });

  test("no body if none is given, or for a GET", async () => {
    await call({ requestBody: { content: { "application/json": {} } } }, {});
    expect(last().headers["content-type"]).toBeUndefined();
    const document = documentOf({ requestBody: { content: { "application/json": {} } } });
    await callOne(document, { body: 1 }, { baseUrl: api.url });
    expect(last()).toMatchObject({ method: "GET", path: "/things", body: "" });
  });
});

describe("the connector's auth", () => {
  const parameters = [
    parameter("Authorization", "header"),
    parameter("Host", "header"),
    parameter("Content-Length", "header"),
    parameter("X-Key", "header"),
    parameter("key", "query"),
    parameter("any", "query"),
  ];
  const input = { Authorization: "mine", Host: "evil", "Content-Length": "0", "X-Key": "mine", key: "mine" };

  test.each<readonly [auth: OpenApiAuth, header: string, value: string, query: string]>([
    [{ type: "bearer", token: "t0ken" }, "authorization", "Bearer t0ken", "key=mine"],
    [{ type: "basic", username: "ä", password: "b:c" }, "authorization", "Basic w6Q6Yjpj", "key=mine"],
    [{ type: "header", name: "x-key", value: "v" }, "x-key", "v", "key=mine"],
    [{ type: "query", name: "key", value: "v&w" }, "x-key", "mine", "key=v%26w"],
  ])("of %p is sent, and no argument replaces it", async (auth, header, value, query) => {
    await call({ parameters }, input, { auth });
    expect(last().headers[header]).toBe(value);
    expect(last().headers.host).toBe(new URL(api.url).host);
    expect(last().query).toBe(query);
  });

  test("cannot be set through an object's fields", async () => {
    const auth = { type: "query", name: "key", value: "v" } as const;
    const answer = await call({ parameters }, { any: { key: "mine" } }, { auth });
    expect(textOf(answer)).toContain('must not set "key"');
  });

  test("is sent only to the document's own server, unless base_url replaces all servers", async () => {
    const other = startApi();
    try {
      const document = {
        ...documentOf({ servers: [{ url: `${other.url}/other` }] }),
        servers: [{ url: `${api.url}/own` }],
      };
      const auth = { type: "bearer", token: "t0ken" } as const;
      await callOne(document, {}, { auth });
      expect(other.asked.at(-1)).toMatchObject({ path: "/other/things" });
      expect(other.asked.at(-1)?.headers.authorization).toBeUndefined();
      await callOne(document, {}, { auth, baseUrl: api.url });
      expect(last()).toMatchObject({ path: "/things" });
      expect(last().headers.authorization).toBe("Bearer t0ken");
    } finally {
      await other.close();
    }
  });
});

describe("a call that does not end", () => {
  const never = () => {
    const asked = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    api.answer((request) => {
      request.signal.addEventListener("abort", () => left.resolve());
      asked.resolve();
      return left.promise.then(() => new Response());
    });
    return { asked: asked.promise, left: left.promise };
  };
  const start = async (options: Parameters<typeof sourceOf>[1] = {}) => {
    const source = sourceOf(documentOf({}), { baseUrl: api.url, ...options });
    const [tool] = await source.list(new AbortController().signal);
    if (!tool) throw new Error("there is no tool");
    const caller = new AbortController();
    const { asked, left } = never();
    const calling = refusal(source.call(tool, {}, { signal: caller.signal, callId: "call_1" }));
    await asked;
    return { source, caller, calling, left };
  };

  test("is ended by the time limit", async () => {
    const clock = new FakeClock();
    const { calling, left } = await start({ clock, timeoutMs: 1_000 });
    clock.advance(1_000);
    expect(await calling).toMatchObject({
      fault: "timeout",
      message: "The connector shop did not answer within 1000 ms.",
    });
    await left;
  });

  test("is ended by its caller", async () => {
    const { caller, calling, left } = await start();
    caller.abort();
    expect((await calling).fault).toBe("cancelled");
    await left;
  });

  test("ends with its source, which then accepts no other call", async () => {
    const { source, calling, left } = await start();
    await source.close();
    expect(await calling).toMatchObject({ fault: "unreachable", message: "The connector shop was closed." });
    await left;
    expect((await refusal(source.list(new AbortController().signal))).fault).toBe("unreachable");
  });
});

test("an unreachable API and a forbidden one have their own faults", async () => {
  const gone = startApi();
  await gone.close();
  const unreachable = await refusal(callOne(documentOf({}), {}, { baseUrl: gone.url }));
  expect(unreachable).toMatchObject({ fault: "unreachable" });
  expect(unreachable.message).toStartWith("The connector shop ");
  const forbidden = await refusal(callOne(documentOf({}), {}, { baseUrl: "http://169.254.169.254/latest" }));
  expect(forbidden.fault).toBe("forbidden_address");
  expect(forbidden.message).toStartWith("The connector shop: ");
});

test("a tool whose binding is not this connector's is refused", async () => {
  const source = sourceOf(documentOf({}), { baseUrl: api.url });
  const tool = keepTool({
    name: "a",
    description: "",
    inputSchema: {},
    destructive: false,
    binding: { method: "GET" },
  });
  const found = await refusal(
    source.call(tool, {}, { signal: new AbortController().signal, callId: "call_1" }),
  );
  expect(found.message).toContain("must be refreshed before this call");
});

test.each([
  ["https://a:b@x.example", "must not contain a user or a password"],
  ["https://x.example?key=secret", "must not contain a query"],
  ["ftp://x.example", "is not an http or https URL"],
])("base_url %s is refused", async (baseUrl, says) => {
  const { message } = await refusal(sourceOf(documentOf({}), { baseUrl }).list(new AbortController().signal));
  expect(message).toBe(
    `The connector shop: base_url ${message.slice("The connector shop: base_url ".length)}`,
  );
  expect(message).toContain(says);
  expect(message).not.toContain("secret");
});
