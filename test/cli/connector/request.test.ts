// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders are what is tested.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { OperatorError } from "../../../src/base/errors.ts";
import { type DefinitionOptions, requestOf } from "../../../src/cli/connector/request.ts";

const ENV = { KEY: "k1", TOKEN_FILE: join(import.meta.dir, "none") };
const URL = "http://127.0.0.1:1/mcp";

function read(command: readonly string[], options: DefinitionOptions, name = "one"): unknown {
  return requestOf(name, command, options, ENV);
}

describe("refused as wrong usage, by the option's name", () => {
  test.each<[string, string[], DefinitionOptions, string]>([
    ["nothing to connect", [], {}, "--openapi"],
    ["two things", ["a"], { url: URL }, "one of"],
    ["a header for a program", ["a"], { header: ["A: b"] }, "--header is only for --url"],
    ["variables for a URL", [], { url: URL, env: ["A=b"] }, "--env is only for a command"],
    ["a token for a URL", [], { url: URL, bearer: "x" }, "--bearer is only for --openapi"],
    [
      "a transport for an API",
      [],
      { openapi: "http://x/", transport: "sse" },
      "--transport is only for --url",
    ],
    ["two ways to log in", [], { openapi: "http://x/", bearer: "a", authQuery: "k=b" }, "--auth-query"],
    ["a variable without a name", ["a"], { env: ["=hunter22"] }, "--env must be"],
    ["a header without a name", [], { url: URL, header: ["hunter22"] }, "--header takes"],
    ["a user without a password", [], { openapi: "http://x/", basic: "hunter22" }, "--basic takes"],
    ["a key without a name", [], { openapi: "http://x/", authHeader: "hunter22" }, "--auth-header takes"],
    ["a variable that is not set", ["a"], { env: ["A=${NONE}"] }, "NONE"],
    ["a variable of this shell that is not set", ["a"], { env: ["NONE"] }, "NONE"],
    ["a secret's file that does not exist", ["a"], { env: ["A=${TOKEN}"] }, "TOKEN_FILE"],
    ["an invalid variable", [], { url: URL, header: ["A: ${hunter22!}"] }, "--header A"],
    ["a document that does not exist", [], { openapi: "none.yaml" }, "none.yaml"],
  ])("%s", (_, command, options, message) => {
    let thrown: unknown;
    try {
      read(command, options);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(OperatorError);
    expect(thrown).toMatchObject({ exitCode: 2, message: expect.stringContaining(message) });
    expect(String(thrown)).not.toContain("hunter22");
  });

  test.each(["", "A", "1a", "a__b", "a-b", "a_", "a".repeat(25)])("the name %p", (name) => {
    expect(() => read(["a"], {}, name)).toThrow("the name");
  });
});

describe("the body that is sent", () => {
  test.each<[string, string[], DefinitionOptions, object]>([
    [
      "a program, its arguments as they are",
      ["npx", "-y", "${KEY}"],
      { env: ["A=x=y", "B=${KEY}-$${KEY}", "KEY"], scope: ["a_*"] },
      {
        kind: "mcp",
        scopes: ["a_*"],
        transport: {
          type: "stdio",
          command: "npx",
          args: ["-y", "${KEY}"],
          env: { A: "x=y", B: "k1-${KEY}", KEY: "k1" },
        },
      },
    ],
    [
      "a program in this folder, by its full path",
      ["./run"],
      {},
      { transport: { type: "stdio", command: join(process.cwd(), "run"), args: [], env: {} } },
    ],
    [
      "a URL with headers",
      [],
      { url: URL, header: ["Authorization: Bearer ${KEY}", "X: "] },
      { transport: { type: "http", url: URL, headers: { Authorization: "Bearer k1", X: "" } } },
    ],
    ["the older transport, by its path", [], { url: "http://x/sse?a" }, { transport: { type: "sse" } }],
    ["the named transport", [], { url: "http://x/sse", transport: "http" }, { transport: { type: "http" } }],
    [
      "an API by its URL",
      [],
      { openapi: "https://x/openapi.json", baseUrl: "https://x/v1", basic: "ada:${KEY}:b" },
      {
        kind: "openapi",
        spec: "https://x/openapi.json",
        base_url: "https://x/v1",
        auth: { type: "basic", username: "ada", password: "k1:b" },
      },
    ],
    ["a token", [], { openapi: "http://x/", bearer: "${KEY}" }, { auth: { type: "bearer", token: "k1" } }],
    [
      "a key in a header",
      [],
      { openapi: "http://x/", authHeader: "X-Key=${KEY}=" },
      { auth: { type: "header", name: "X-Key", value: "k1=" } },
    ],
    [
      "a key in the query",
      [],
      { openapi: "http://x/", authQuery: "key=a=b" },
      { auth: { type: "query", name: "key", value: "a=b" } },
    ],
  ])("%s", (_, command, options, body) => {
    expect(read(command, options)).toMatchObject({ name: "one", ...body });
  });
});
