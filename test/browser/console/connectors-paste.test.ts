/** What is read from a pasted configuration: every form that clients write, and arbitrary other text. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { pairsIn } from "../../../src/console/pages/connectors/drafts.ts";
import { fitName, nameError } from "../../../src/console/pages/connectors/names.ts";
import { readPaste } from "../../../src/console/pages/connectors/paste.ts";
import { openFields } from "../../../src/console/pages/connectors/placeholders.ts";

/** The result in a short form for comparison. */
function read(text: string, taken: string[] = []) {
  const pasted = readPaste(text, taken);
  if ("message" in pasted) return pasted.message;
  const pairs = (list: readonly { name: string; value: string }[]) =>
    list.map(({ name, value }) => `${name}=${value}`);
  return pasted.servers.map(({ name, draft: { type, command, args, env, url, headers } }) =>
    type === "stdio"
      ? [name, type, command, ...args.split("\n").filter((line) => line !== ""), ...pairs(env)]
      : [name, type, url, ...pairs(headers)],
  );
}

/** A placeholder as clients write it. */
const open = (name: string) => `\${${name}}`;

const notesOf = (text: string) => {
  const pasted = readPaste(text);
  return "message" in pasted ? [] : [...pasted.refused, ...pasted.servers.flatMap(({ notes }) => notes)];
};

describe("is refused with a message", () => {
  test.each([
    ["nothing", "  ", "is empty"],
    ["no JSON", "npx -y server", "not JSON"],
    ["a truncated piece", '{"mcpServers": {"a": {"command": "x"', "not JSON"],
    ["a list", '[{"command":"x"}]', "not an object"],
    ["null", "null", "not an object"],
    ["an object of another kind", '{"mcpServers": {"a": {"name": "x"}}}', "no server"],
    ["too much text", `{"a":"${"x".repeat(1_000_001)}"}`, "longer than a million"],
    [
      "too many servers",
      JSON.stringify(Object.fromEntries(Array.from({ length: 201 }, (_, n) => [`s${n}`, { command: "x" }]))),
      "more than 200",
    ],
    ["endless nesting", `${'{"mcpServers":'.repeat(100_000)}`, ""],
  ])("%s", (_, text, words) => {
    expect(read(text)).toContain(words);
    expect(read(text)).toBeString();
  });
});

describe("a server is read", () => {
  test.each([
    [
      "from Claude's and Cursor's form",
      '{"mcpServers":{"git":{"command":"npx","args":["-y","pkg"],"env":{"A":"1"}}}}',
      [["git", "stdio", "npx", "-y", "pkg", "A=1"]],
    ],
    ["without the outer key", '{"git":{"command":"uvx","args":["x"]}}', [["git", "stdio", "uvx", "x"]]],
    [
      "from VS Code's file, with comments and an extra comma",
      '{\n  // mine\n  "servers": {"a": {"type": "http", "url": "https://a.example//mcp", /* x */ },},\n}',
      [["a", "http", "https://a.example//mcp"]],
    ],
    ["from VS Code's settings", '{"mcp":{"servers":{"a":{"command":"x"}}}}', [["a", "stdio", "x"]]],
    ["from part of an object", '"a": {"command": "x"},', [["a", "stdio", "x"]]],
    [
      "a bare one, named by its package",
      '{"command":"npx","args":["-y","@x/server-git@1.2"]}',
      [["git", "stdio", "npx", "-y", "@x/server-git@1.2"]],
    ],
    [
      "a bare one, named by its host",
      '{"url":"https://mcp.linear.app/mcp"}',
      [["linear", "http", "https://mcp.linear.app/mcp"]],
    ],
    [
      "with headers",
      '{"a":{"url":"https://a.example/mcp","headers":{"Authorization":"Bearer x"}}}',
      [["a", "http", "https://a.example/mcp", "Authorization=Bearer x"]],
    ],
    [
      "as SSE, by its type",
      '{"a":{"type":"sse","url":"https://a.example/x"}}',
      [["a", "sse", "https://a.example/x"]],
    ],
    [
      "as SSE, by its address",
      '{"a":{"url":"https://a.example/sse"}}',
      [["a", "sse", "https://a.example/sse"]],
    ],
    [
      "as HTTP, whatever its address",
      '{"a":{"type":"streamable-http","url":"https://a.example/sse"}}',
      [["a", "http", "https://a.example/sse"]],
    ],
    [
      "from other names of the address",
      '{"a":{"serverUrl":"https://a.example"},"b":{"httpUrl":"https://b.example/sse"}}',
      [
        ["a", "http", "https://a.example"],
        ["b", "http", "https://b.example/sse"],
      ],
    ],
    [
      "with a command that is a list",
      '{"a":{"command":["npx","-y","pkg"],"environment":{"N":1,"B":true}}}',
      [["a", "stdio", "npx", "-y", "pkg", "N=1", "B=true"]],
    ],
  ])("%s", (_, text, servers) => {
    expect(read(text)).toEqual(servers);
  });

  test("and strings that look like comments or commas stay as they are", () => {
    expect(read('{"a":{"command":"x","args":["// no", "/* no */", ",]", "\\",}"]}}')).toEqual([
      ["a", "stdio", "x", "// no", "/* no */", ",]", '",}'],
    ]);
  });

  test("next to one that cannot be added, which is named", () => {
    const text =
      '{"good":{"command":"x"},"bad":{"command":"x","args":{"0":"y"}},"worse":{"command":"x","env":{"A":{}}}}';
    expect(read(text)).toEqual([["good", "stdio", "x"]]);
    expect(notesOf(text)).toEqual([
      "bad: its args are not a list of strings.",
      "worse: its env is not an object of strings.",
    ]);
  });

  test("and a note says what is ignored", () => {
    expect(notesOf('{"a":{"command":"x","cwd":"/","envFile":".env","disabled":true}}')).toEqual([
      "It is disabled in its client.",
      "Ignored: cwd, envFile.",
    ]);
  });

  test("even if its name is a property of every object", () => {
    const text =
      '{"mcpServers":{"__proto__":{"command":"x","env":{"__proto__":"1"}},"constructor":{"command":"y"}}}';
    expect(read(text)).toEqual([
      ["proto", "stdio", "x", "__proto__=1"],
      ["constructor", "stdio", "y"],
    ]);
    expect(Object.hasOwn(Object.prototype, "command")).toBe(false);
  });
});

describe("a name is made valid", () => {
  test.each([
    ["GitHub Enterprise", "github_enterprise"],
    ["@modelcontextprotocol/server-filesystem", "filesystem"],
    ["github.com/x/servers/tree/main/src/git", "git"],
    ["mcp-server-time-zones", "time_zones"],
    ["Überweisungen & Café", "uberweisungen_cafe"],
    ["__a--b__", "a_b"],
    ["2fast", "fast"],
    ["日本語", "connector"],
    ["", "connector"],
    ["a-name-that-goes-on-and-on-and-on", "a_name_that_goes_on_and"],
    ["vault", "vault_2"],
    ["agents", "agents_2"],
    ["taken", "taken_2"],
    ["twenty_four_characters_xx", "twenty_four_characters_x"],
  ])("%s", (title, name) => {
    expect(fitName(title, new Set(["taken"]))).toBe(name);
    expect(nameError(name)).toBeUndefined();
  });

  test("whatever it was, and unique", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary", maxLength: 40 }), { maxLength: 30 }), (titles) => {
        const taken = new Set<string>();
        for (const title of titles) {
          const name = fitName(title, taken);
          expect(nameError(name)).toBeUndefined();
          expect(taken.has(name)).toBe(false);
          taken.add(name);
        }
      }),
    );
  });
});

test("no pasted text throws an error", () => {
  const key = fc.constantFrom(
    "mcpServers",
    "servers",
    "mcp",
    "a",
    "__proto__",
    "command",
    "args",
    "env",
    "url",
    "headers",
    "type",
    "inputs",
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 6 },
      fc.string(),
      fc.integer(),
      fc.constant(null),
      tie("list"),
      tie("object"),
    ),
    list: fc.array(tie("value"), { maxLength: 4 }),
    object: fc.dictionary(key, tie("value"), { maxKeys: 6 }),
  }));
  fc.assert(
    fc.property(value, (each) => void readPaste(JSON.stringify(each))),
    { numRuns: 500 },
  );
  fc.assert(
    fc.property(fc.string(), (each) => void readPaste(each)),
    { numRuns: 500 },
  );
});

describe("what is left incomplete", () => {
  const openOf = (server: object, inputs: object[] = []) => {
    const pasted = readPaste(JSON.stringify({ inputs, servers: { a: server } }));
    const [first] = "message" in pasted ? [] : pasted.servers;
    return first ? [...openFields(first.draft, first.inputs).values()] : [];
  };

  test("is found wherever it is", () => {
    expect(
      openOf({ command: open("BIN"), args: ["--root=<path>"], env: { A: "YOUR_API_KEY", B: "real" } }),
    ).toEqual([`Fill in: ${open("BIN")}`, "Fill in: <path>", "Fill in: YOUR_API_KEY"]);
    expect(
      openOf({ url: "https://{{host}}/mcp", headers: { Authorization: `Bearer ${open("env:TOKEN")}` } }),
    ).toEqual(["Fill in: {{host}}", `Fill in: ${open("env:TOKEN")}`]);
  });

  test("is described in the configuration's own words", () => {
    const inputs = [{ id: "key", type: "promptString", description: "The key of the API", password: true }];
    expect(openOf({ command: "x", env: { A: open("input:key") } }, inputs)).toEqual([
      `Fill in: ${open("input:key")} (The key of the API)`,
    ]);
  });

  test("is nothing if everything is there", () => {
    expect(openOf({ command: "x", args: ["$HOME", "{}", "a<b"], env: { A: "ghp_x" } })).toEqual([]);
  });
});

test("lines of variables or headers become rows, and other text stays as it is", () => {
  const rows = (text: string, mark: "=" | ":") =>
    pairsIn(text, mark)?.map(({ name, value }) => [name, value]);
  expect(rows('# my\nexport A=1\nB = "two words"\nC=a=b\n', "=")).toEqual([
    ["A", "1"],
    ["B", "two words"],
    ["C", "a=b"],
  ]);
  expect(rows("Authorization: Bearer a:b\nX-Key:  c", ":")).toEqual([
    ["Authorization", "Bearer a:b"],
    ["X-Key", "c"],
  ]);
  expect(rows("A=1\nnot a line", "=")).toBeUndefined();
  expect(rows("", "=")).toBeUndefined();
});
