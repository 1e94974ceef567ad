import { describe, expect, test } from "bun:test";
import { createMask } from "../../../src/base/masking/mask.ts";
import type { ConnectorDefinition, OpenApiAuth } from "../../../src/connectors/definition/definition.ts";
import { secretsOf } from "../../../src/connectors/secrets/secrets-of.ts";

const stdio = (env: Record<string, string>, args: string[] = []): ConnectorDefinition => ({
  kind: "mcp",
  transport: { type: "stdio", command: "npx", args, env },
});
const http = (url: string, headers: Record<string, string> = {}): ConnectorDefinition => ({
  kind: "mcp",
  transport: { type: "http", url, headers },
});
const openapi = (auth: OpenApiAuth | null, spec = "https://a.example/spec", baseUrl: string | null = null) =>
  ({ kind: "openapi", spec, baseUrl, auth }) satisfies ConnectorDefinition;

const PEM = `-----BEGIN PRIVATE KEY-----\n${"MIIEvQIBADANBgkq".repeat(2)}\nshort\n-----END PRIVATE KEY-----\n`;
const basic = (text: string) => Buffer.from(text).toString("base64");

const FOUND: [name: string, definition: ConnectorDefinition, ...secrets: string[]][] = [
  ["a variable", stdio({ API_KEY: "abcdef" }), "abcdef"],
  ["a variable of any name", stdio({ X: "whatever it is" }), "whatever it is"],
  [
    "a token that begins with a slash",
    stdio({ API_TOKEN: "/aB3+cd=", OTHER: "/aB3+cd==" }),
    "/aB3+cd=",
    "/aB3+cd==",
  ],
  ["a token with one slash", stdio({ API_TOKEN: "/aB3cdefgh" }), "/aB3cdefgh"],
  [
    "a variable that is a database's URL",
    stdio({ DATABASE_URL: "postgres://user:p%40ssword@db/x" }),
    "postgres://user:p%40ssword@db/x",
    "p@ssword",
    "p%40ssword",
  ],
  ["a key with many lines, and its long ones", stdio({ KEY: PEM }), PEM, "MIIEvQIBADANBgkq".repeat(2)],
  ["a header", http("https://a.example", { "X-Api-Key": "abcdef" }), "abcdef"],
  [
    "a header with a scheme",
    http("https://a.example", { Authorization: "Bearer abcdef" }),
    "Bearer abcdef",
    "abcdef",
  ],
  [
    "the content of a header's Basic credentials",
    http("https://a.example", { authorization: `Basic ${basic("me:password")}` }),
    `Basic ${basic("me:password")}`,
    basic("me:password"),
    "me:password",
    "password",
  ],
  [
    "each value of a cookie",
    http("https://a.example", { Cookie: "session=abcdef; b=c; other=ghijkl" }),
    "session=abcdef; b=c; other=ghijkl",
    "abcdef",
    "ghijkl",
  ],
  [
    "values of a query",
    http("https://a.example/mcp?api_key=abc%20def&x=1"),
    "https://a.example/mcp?api_key=abc%20def&x=1",
    "abc def",
  ],
  [
    "an older transport's header",
    { kind: "mcp", transport: { type: "sse", url: "https://a.example", headers: { "x-a": "abcdef" } } },
    "abcdef",
  ],
  ["a token", openapi({ type: "bearer", token: "abcdef" }), "abcdef"],
  [
    "a password, and its form in HTTP",
    openapi({ type: "basic", username: "username", password: "password" }),
    "password",
    basic("username:password"),
  ],
  ["a header's value", openapi({ type: "header", name: "accept", value: "abcdef" }), "abcdef"],
  [
    "a value that looks like a path",
    openapi({ type: "query", name: "key", value: "/abcdef/gh" }),
    "/abcdef/gh",
  ],
  [
    "queries of the document's and the API's URL",
    openapi(null, "https://a.example/spec?key=abcdef", "https://a.example/?key=ghijkl"),
    "https://a.example/spec?key=abcdef",
    "abcdef",
    "https://a.example/?key=ghijkl",
    "ghijkl",
  ],
];

const ARGUMENTS: [args: string[], ...secrets: string[]][] = [
  [["--token=abcdef"], "abcdef"],
  [["--api-key", "abcdef"], "abcdef"],
  [["-apikey", "-abcdef"], "-abcdef"],
  [["-e", "GITHUB_TOKEN=abcdef"], "abcdef"],
  [["--env=GITHUB_TOKEN=abc=def"], "abc=def"],
  [["--header", "Authorization: Bearer abcdef"], "Bearer abcdef", "abcdef"],
  [["--header=X-Api-Key:abcdef"], "abcdef"],
  [["postgres://user:password@db/x"], "postgres://user:password@db/x", "password"],
  [["--db=postgres://user:password@db/x"], "postgres://user:password@db/x", "password"],
  [["https://a.example/mcp?key=abcdef"], "https://a.example/mcp?key=abcdef", "abcdef"],
  [["https://abcdef@a.example/mcp"], "https://abcdef@a.example/mcp", "abcdef"],
];

describe("a secret is", () => {
  test.each(FOUND)("%s", (_, definition, ...secrets) => {
    expect(secretsOf(definition).sort()).toEqual(secrets.sort());
  });

  test.each(ARGUMENTS)("in the arguments %j", (args, ...secrets) => {
    expect(secretsOf(stdio({}, args)).sort()).toEqual(secrets.sort());
  });
});

describe("not a secret:", () => {
  test.each([
    ["a short value", stdio({ A: "12345", B: "true", C: "FALSE", PORT: "8080", D: "", E: "      " })],
    [
      "a path",
      stdio({
        FILE: "/var/lib/x",
        HERE: "./data/x",
        HOME_DIR: "~/notes",
        DRIVE: "C:\\Users\\me",
        UP: "../sibling",
      }),
    ],
    ["a secret's file", stdio({ TOKEN_FILE: "/run/secrets/token", SSH_KEY: "~/.ssh/id_ed25519" })],
    ["a URL without user and query", stdio({ API_URL: "https://api.example.org/v1" })],
    ["a variable of the system", stdio({ PATH: "whatever", LANG: "en_GB.UTF-8", NODE_ENV: "production" })],
    [
      "a header that describes the content",
      http("https://a.example", {
        Accept: "application/json",
        "Content-Type": "text/plain",
        "User-Agent": "gatehouse",
      }),
    ],
    ["an address", http("https://mcp.example.org/path")],
    [
      "an argument of another kind",
      stdio({}, [
        "-y",
        "@modelcontextprotocol/server-github",
        "--port=123456",
        "--verbose",
        "/srv/data",
        "--token",
        "--other",
      ]),
    ],
    ["a key's file as an argument", stdio({}, ["--key", "/etc/ssl/key.pem", "--key=/etc/ssl/key.pem"])],
    ["an API without authentication", openapi(null, "https://a.example/spec", "https://a.example/v1")],
    ["a document", openapi(null, '{"openapi":"3.1.0","servers":[{"url":"https://a.example?key=abcdef"}]}')],
  ])("%s", (_, definition) => {
    expect(secretsOf(definition)).toEqual([]);
  });
});

test("a definition's secrets are masked when an upstream repeats them", () => {
  const definition = http("https://a.example/mcp?key=query-secret", {
    Authorization: "Bearer header-secret",
  });
  const mask = createMask(secretsOf(definition));
  const said = `401 for "Bearer header-secret" (token header-secret) at https://a.example/mcp?key=query-secret`;
  expect(mask.text(said)).toBe('401 for "[redacted]" (token [redacted]) at [redacted]');
});
