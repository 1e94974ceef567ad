// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders are what is tested.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { entryRequest, readClientFile } from "../../../src/cli/connector/client-file.ts";
import { isConnectorName } from "../../../src/connectors/connector.ts";
import { tempDir } from "../../support/process.ts";
import { type Desk, openDesk } from "../support.ts";

setDefaultTimeout(60_000);

const UPSTREAM = join(import.meta.dir, "..", "..", "support", "fake-mcp", "stdio.ts");
const folder = tempDir();
let desk: Desk;
beforeAll(() => {
  desk = openDesk();
});
afterAll(async () => {
  await desk.clear();
  folder.remove();
});

/** What a file's entry becomes, or why it is not imported. */
function read(
  value: unknown,
  env: Record<string, string> = {},
  file = join(folder.path, "mcp.json"),
): unknown {
  try {
    return entryRequest({ entry: "one", name: "one", value }, file, env).transport;
  } catch (error) {
    return error instanceof Error ? error.message : error;
  }
}

test.each<[string, unknown, string]>([
  ["neither command nor url", { args: [] }, "neither command nor url"],
  ["both", { command: "a", url: "http://x/" }, "both command and url"],
  ["an unknown type", { type: "ws", url: "http://x/" }, "type"],
  ["a command that claims to be http", { type: "http", command: "a" }, "type is http"],
  ["a URL that claims to be stdio", { type: "stdio", url: "http://x/" }, "no command"],
  ["another folder", { command: "a", cwd: "/srv" }, "cwd"],
  ["a file of variables", { command: "a", envFile: ".env" }, "envFile"],
  ["arguments that are not texts", { command: "a", args: [1] }, "args"],
  ["an entry that is not an object", "npx", "not a valid server entry"],
  [
    "input that its client would prompt for",
    { url: "http://x/", headers: { A: "${input:api-key}" } },
    "${input:api-key}",
  ],
  ["a variable that is not set", { url: "http://x/", headers: { A: "${env:NONE}" } }, "NONE"],
  ["an unknown placeholder", { command: "${command:pick}" }, "${command:pick}"],
  ["a folder that is not known", { command: "${workspaceFolder}/a" }, "${workspaceFolder}"],
])("an entry is refused, by name: %s", (_, value, message) => {
  expect(read(value)).toContain(message);
});

test("an invalid placeholder may be a secret, and is not repeated", () => {
  expect(read({ url: "http://x/", headers: { A: "${hunter22!" + "}" } })).not.toContain("hunter22");
});

test.each<[string, unknown, object]>([
  [
    "Claude Desktop: a command",
    { command: "npx", args: ["-y", "server", "/srv"], env: { A: "b", N: 3, OFF: null } },
    { type: "stdio", command: "npx", args: ["-y", "server", "/srv"], env: { A: "b", N: "3" } },
  ],
  [
    "Cursor: a URL with a header from the environment",
    { url: "http://x/mcp", headers: { Authorization: "Bearer ${env:KEY}" } },
    { type: "http", url: "http://x/mcp", headers: { Authorization: "Bearer k1" } },
  ],
  [
    "the older transport, by its path",
    { url: "http://x/sse" },
    { type: "sse", url: "http://x/sse", headers: {} },
  ],
  [
    "the older transport, by its name",
    { type: "sse", url: "http://x/m" },
    { type: "sse", url: "http://x/m" },
  ],
  [
    "type http with such a path",
    { type: "http", url: "http://x/sse" },
    { type: "http", url: "http://x/sse" },
  ],
  ["streamable-http", { type: "streamable-http", url: "http://x/m" }, { type: "http", url: "http://x/m" }],
  ["streamableHttp", { type: "streamableHttp", url: "http://x/m" }, { type: "http", url: "http://x/m" }],
  ["serverUrl", { serverUrl: "http://x/m" }, { type: "http", url: "http://x/m" }],
  [
    "Claude Code: variables and defaults",
    { type: "stdio", command: "${KEY}", args: ["${NONE:-a b}"] },
    { type: "stdio", command: "k1", args: ["a b"], env: {} },
  ],
])("an entry is accepted: %s", (_, value, transport) => {
  expect(read(value, { KEY: "k1" })).toMatchObject(transport);
});

test("an editor's file knows its workspace", () => {
  const file = join(folder.path, "shop", ".vscode", "mcp.json");
  const entry = { command: "${workspaceFolder}/run", args: ["${workspaceFolderBasename}"] };
  expect(read(entry, {}, file)).toMatchObject({ command: join(folder.path, "shop", "run"), args: ["shop"] });
});

test("a variable's value is not expanded again", () => {
  expect(read({ command: "${env:A}" }, { A: "${env:B}", B: "x" })).toMatchObject({ command: "${env:B}" });
});

test("whatever a file calls its servers, the names are valid and distinct connector names", () => {
  const path = join(folder.path, "names.json");
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string({ unit: "grapheme", maxLength: 60 }), { maxLength: 40 }),
      (names) => {
        const servers = Object.fromEntries(names.map((name) => [name, {}]));
        writeFileSync(path, JSON.stringify({ mcpServers: servers }));
        const read = readClientFile(path);
        expect(read.map(({ entry }) => entry).toSorted()).toEqual(Object.keys(servers).toSorted());
        expect(read.filter(({ name }) => !isConnectorName(name))).toEqual([]);
        expect(new Set(read.map(({ name }) => name)).size).toBe(read.length);
      },
    ),
  );
});

test("valid names are kept", () => {
  const path = join(folder.path, "fine.json");
  writeFileSync(
    path,
    JSON.stringify({ servers: { github: {}, "My Files": {}, "my-files": {}, "1password": {} } }),
  );
  const names = readClientFile(path).map(({ entry, name }) => [entry, name]);
  expect(Object.fromEntries(names)).toEqual({
    github: "github",
    "My Files": "my_files",
    "my-files": "my_files_2",
    "1password": "mcp_1password",
  });
});

test("a file with comments: valid entries are added, the others report why, and the verb exits with 1", async () => {
  mkdirSync(join(desk.cwd, ".vscode"), { recursive: true });
  const file = join(desk.cwd, ".vscode", "mcp.json");
  writeFileSync(
    file,
    `\uFEFF{
      // VS Code's format
      "inputs": [{ "id": "token", "type": "promptString" }],
      "servers": {
        "My Files": { "command": ${JSON.stringify(process.execPath)}, "args": [${JSON.stringify(UPSTREAM)}, "plain"], },
        "Asks": { "type": "http", "url": "http://127.0.0.1:1/mcp", "headers": { "A": "\${input:token}" } },
        "old": { "command": "x", "disabled": true }, /* gone */
        "vault": { "url": "http://127.0.0.1:1/mcp" },
      },
    }`,
  );
  const ran = await desk.cli(["connector", "add", "--import", file]);
  expect(ran.code).toBe(1);
  expect(ran.stdout).toMatch(/^my_files: ready, \d+ tools \(My Files in the file\)\n$/);
  expect(ran.stderr.trim().split("\n")).toEqual([
    expect.stringMatching(/^failed: Asks: .*\$\{input:token\}/),
    "skipped: old: it is disabled in the file",
    expect.stringMatching(/^failed: vault: .*already exists/),
  ]);

  const one = await desk.cli(["connector", "add", "--import", file, "--only", "old", "--json"]);
  expect(one).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(one.stdout)).toMatchObject([{ entry: "old", outcome: "skipped", connector: null }]);
});

test.each([
  ["no such file", "nowhere.json", null, "does not exist"],
  ["not JSON", "broken.json", '{"mcpServers": {"a": {"env": {"K": "hunter22"', "not JSON"],
  ["no servers", "other.json", "{}", "neither mcpServers nor servers"],
])("an unreadable file exits with 2: %s", async (_, name, text, message) => {
  if (text !== null) writeFileSync(join(desk.cwd, name), text);
  const ran = await desk.cli(["connector", "add", "--import", name]);
  expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 2, stdout: "" });
  expect(ran.stderr).toContain(message);
  expect(ran.stderr).not.toContain("hunter22");
});
