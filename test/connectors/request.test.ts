import { describe, expect, test } from "bun:test";
import { Problem } from "../../src/base/errors.ts";
import { validator } from "../../src/base/schema.ts";
import { ConnectorCreate, definitionOf } from "../../src/connectors/definition/request.ts";

const body = validator(ConnectorCreate);

/** The paths of a body's faults, as REST names them. */
function faults(request: object): string[] {
  if (!body.is(request)) return body.errors(request).map(({ path }) => path);
  try {
    definitionOf(request);
    return [];
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return (error.errors ?? []).map(({ path }) => path);
  }
}

const stdio = { type: "stdio", command: "server" };
const http = { type: "http", url: "https://mcp.example.org/mcp" };
const mcp = (more: object) => ({ name: "up", kind: "mcp", ...more });
const api = (more: object) => ({
  name: "up",
  kind: "openapi",
  spec: "https://api.example.org/openapi.json",
  ...more,
});

describe("a name", () => {
  test.each([
    [""],
    ["Up"],
    ["1up"],
    ["_up"],
    ["up_"],
    ["up__two"],
    ["up-two"],
    ["up.two"],
    ["up two"],
    ["ü"],
    ["up\n"],
    ["u".repeat(25)],
    [1],
    [null],
  ])("%p is refused", (name) => {
    expect(faults(mcp({ name, transport: stdio }))).toEqual(["/name"]);
  });

  test.each([["u"], ["up"], ["up2"], ["up_2"], ["a_b_c"], ["u".repeat(24)]])("%p is accepted", (name) => {
    expect(faults(mcp({ name, transport: stdio }))).toEqual([]);
  });
});

describe("a definition is refused, naming the field,", () => {
  const values = (count: number) => Array.from({ length: count }, (_, index) => `value-${index}`);
  const variables = (count: number) =>
    Object.fromEntries(values(count).map((value, index) => [`V${index}`, value]));
  const options = (count: number) => values(count).map((value) => `--token=${value}`);
  const cookies = (count: number) =>
    values(count)
      .map((value) => `a=${value}`)
      .join("; ");
  const url = (count: number) => `https://mcp.example.org/mcp?${cookies(count).replaceAll("; ", "&")}`;
  const long = "x".repeat(8_192);

  // A whole cookie header, and a whole URL that contains secrets, is a secret too.
  test.each<readonly [string, object, string]>([
    ["65 variables", mcp({ transport: { ...stdio, env: variables(65) } }), "/transport/env"],
    ["65 arguments", mcp({ transport: { ...stdio, args: options(65) } }), "/transport/args"],
    ["64 cookies", mcp({ transport: { ...http, headers: { Cookie: cookies(64) } } }), "/transport/headers"],
    ["64 values in a URL", mcp({ transport: { ...http, url: url(64) } }), "/transport/url"],
    ["64 values in a document's URL", api({ spec: url(64) }), "/spec"],
    ["64 values in a base URL", api({ base_url: url(64) }), "/base_url"],
    [
      "more than 16,384 characters",
      mcp({ transport: { ...stdio, env: { A: `${long}1`, B: long } } }),
      "/transport/env",
    ],
    [
      "a password whose encoded form is too long with it",
      api({ auth: { type: "basic", username: "u", password: long } }),
      "/auth",
    ],
  ])("with too many secrets: %s", (_, request, path) => {
    expect(faults(request)).toEqual([path]);
  });

  test.each<readonly [string, object]>([
    ["64 variables", mcp({ transport: { ...stdio, env: variables(64) } })],
    ["63 cookies", mcp({ transport: { ...http, headers: { Cookie: cookies(63) } } })],
    ["16,384 characters", mcp({ transport: { ...stdio, env: { A: long, B: long.replace("x", "y") } } })],
    [
      "a key with many lines",
      mcp({ transport: { ...stdio, env: { KEY: `${"0123456789abcdef".repeat(4)}\n`.repeat(200) } } }),
    ],
    ["values that are not secrets", mcp({ transport: { ...stdio, args: values(200) } })],
    ["the same value everywhere", mcp({ transport: { ...stdio, args: Array(200).fill("--token=abcdef") } })],
  ])("and accepted at the limit: %s", (_, request) => {
    expect(faults(request)).toEqual([]);
  });

  test("that has two headers whose names differ only in case", () => {
    const headers = { Cookie: "a=1", accept: "*/*", cOOkie: "b=2" };
    expect(faults(mcp({ transport: { ...http, headers } }))).toEqual(["/transport/headers/cOOkie"]);
  });
});

describe("a body is refused, naming the field:", () => {
  test.each<readonly [string, object, string]>([
    ["no name", { kind: "mcp", transport: stdio }, "/name"],
    ["no kind", { name: "up", transport: stdio }, "/kind"],
    ["a builtin kind", { name: "up", kind: "builtin" }, "/kind"],
    ["an unknown field", mcp({ transport: stdio, owner: "x" }), "/owner"],
    ["no transport", mcp({}), "/transport"],
    ["no type", mcp({ transport: { command: "x" } }), "/transport/type"],
    ["another type", mcp({ transport: { type: "ws", url: "ws://x" } }), "/transport/type"],
    ["no command", mcp({ transport: { type: "stdio" } }), "/transport/command"],
    ["an empty command", mcp({ transport: { type: "stdio", command: "" } }), "/transport/command"],
    [
      "a command with a zero byte",
      mcp({ transport: { type: "stdio", command: "a\0b" } }),
      "/transport/command",
    ],
    ["a URL for a program", mcp({ transport: { ...stdio, url: "https://x" } }), "/transport/url"],
    ["headers for a program", mcp({ transport: { ...stdio, headers: {} } }), "/transport/headers"],
    ["arguments that are not a list", mcp({ transport: { ...stdio, args: "x" } }), "/transport/args"],
    ["an argument that is not text", mcp({ transport: { ...stdio, args: [1] } }), "/transport/args/0"],
    ["an argument with a zero byte", mcp({ transport: { ...stdio, args: ["a\0b"] } }), "/transport/args/0"],
    ["a variable that is not text", mcp({ transport: { ...stdio, env: { A: 1 } } }), "/transport/env/A"],
    ["a variable with a zero byte", mcp({ transport: { ...stdio, env: { A: "a\0" } } }), "/transport/env/A"],
    ["no URL", mcp({ transport: { type: "http" } }), "/transport/url"],
    ["an empty URL", mcp({ transport: { type: "sse", url: "" } }), "/transport/url"],
    ["a command for a server", mcp({ transport: { ...http, command: "x" } }), "/transport/command"],
    ["variables for a server", mcp({ transport: { ...http, env: {} } }), "/transport/env"],
    [
      "a header with a line break",
      mcp({ transport: { ...http, headers: { a: "b\r\nc: d" } } }),
      "/transport/headers/a",
    ],
    ["a document for a server", mcp({ transport: http, spec: "x" }), "/spec"],
    ["a base for a server", mcp({ transport: http, base_url: "https://x" }), "/base_url"],
    ["an auth for a server", mcp({ transport: http, auth: { type: "bearer", token: "x" } }), "/auth"],
    ["no document", { name: "up", kind: "openapi" }, "/spec"],
    ["an empty document", api({ spec: "" }), "/spec"],
    ["a transport for an API", api({ transport: http }), "/transport"],
    ["no token", api({ auth: { type: "bearer" } }), "/auth/token"],
    ["another's field", api({ auth: { type: "bearer", token: "x", value: "y" } }), "/auth/value"],
    ["no password", api({ auth: { type: "basic", username: "x" } }), "/auth/password"],
    ["a header without a name", api({ auth: { type: "header", value: "x" } }), "/auth/name"],
    ["a header with a space", api({ auth: { type: "header", name: "a b", value: "x" } }), "/auth/name"],
    [
      "a header with a line break",
      api({ auth: { type: "header", name: "a", value: "x\ny" } }),
      "/auth/value",
    ],
    ["a token with a line break", api({ auth: { type: "bearer", token: "x\ny" } }), "/auth/token"],
    ["a query without a value", api({ auth: { type: "query", name: "key" } }), "/auth/value"],
    ["another auth", api({ auth: { type: "oauth2" } }), "/auth/type"],
    ["no scopes", mcp({ transport: stdio, scopes: [] }), "/scopes"],
    ["a scope that is empty", mcp({ transport: stdio, scopes: [""] }), "/scopes/0"],
    ["a scope with a space", mcp({ transport: stdio, scopes: ["ok", "a b"] }), "/scopes/1"],
  ])("%s", (_, request, path) => {
    expect(faults(request)).toContain(path);
  });

  test("an invalid name of a variable or header", () => {
    expect(faults(mcp({ transport: { ...stdio, env: { "A B": "x" } } }))[0]).toStartWith("/transport/env");
    expect(faults(mcp({ transport: { ...http, headers: { "a b": "x" } } }))[0]).toStartWith(
      "/transport/headers",
    );
  });
});

describe("a request becomes a definition", () => {
  test.each([
    [mcp({ transport: stdio }), { kind: "mcp", transport: { ...stdio, args: [], env: {} } }],
    [mcp({ transport: http }), { kind: "mcp", transport: { ...http, headers: {} } }],
    [
      mcp({ transport: { type: "sse", url: "https://x/sse", headers: { Authorization: "Bearer x" } } }),
      {
        kind: "mcp",
        transport: { type: "sse", url: "https://x/sse", headers: { Authorization: "Bearer x" } },
      },
    ],
    [api({}), { kind: "openapi", spec: "https://api.example.org/openapi.json", baseUrl: null, auth: null }],
    [
      api({
        spec: { openapi: "3.1.0" },
        base_url: "https://x",
        auth: { type: "query", name: "k", value: "ü" },
      }),
      {
        kind: "openapi",
        spec: '{"openapi":"3.1.0"}',
        baseUrl: "https://x",
        auth: { type: "query", name: "k", value: "ü" },
      },
    ],
    [
      api({ auth: { type: "basic", username: "ü", password: "" } }),
      {
        kind: "openapi",
        spec: "https://api.example.org/openapi.json",
        baseUrl: null,
        auth: { type: "basic", username: "ü", password: "" },
      },
    ],
  ])("%#", (request, definition) => {
    expect(faults(request)).toEqual([]);
    if (!body.is(request)) throw new Error("it was valid a line ago");
    expect<object>(definitionOf(request)).toEqual(definition);
  });
});
