import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProgram } from "../../src/cli/program.ts";
import { fromSources } from "../support/process.ts";
import { openDesk, SECRET } from "./support.ts";

setDefaultTimeout(60_000);

const desk = openDesk();
afterAll(() => desk.clear());

test("a reader that leaves before the output ends, as head does, causes no error", async () => {
  const child = Bun.spawn([...(await fromSources()), "config", "reference"], {
    cwd: desk.cwd,
    env: { PATH: "", HOME: desk.cwd },
    stdio: ["ignore", "pipe", "pipe"],
  });
  await child.stdout.cancel();
  expect(await new Response(child.stderr).text()).toBe("");
  expect(await child.exited).toBe(0);
});

test("each command is loaded under its own name, and without others", async () => {
  const all = (await createProgram([])).commands.map((command) => command.name());
  expect(all.length).toBeGreaterThan(10);
  for (const name of all) {
    const { commands } = await createProgram([name, "--help"]);
    expect(commands.map((command) => command.name())).toEqual([name]);
  }
  expect((await createProgram(["help", "serve"])).commands.length).toBe(all.length);
});

const VERBS = [
  [],
  ["serve"],
  ["console"],
  ["task"],
  ["task", "run"],
  ["token"],
  ["token", "create"],
  ["token", "list"],
  ["token", "rotate"],
  ["token", "revoke"],
  ["token", "secret"],
  ["workspace"],
  ["workspace", "create"],
  ["workspace", "list"],
  ["workspace", "stop"],
  ["workspace", "resume"],
  ["stop-all"],
  ["resume-all"],
  ["mcp"],
  ["connector"],
  ["connector", "add"],
  ["connector", "list"],
  ["connector", "remove"],
  ["connector", "refresh"],
  ["ledger"],
  ["ledger", "verify"],
  ["ledger", "export"],
  ["ledger", "checkpoint"],
  ["ledger", "key"],
  ["ledger", "rotate-key"],
  ["config"],
  ["config", "show"],
  ["config", "check"],
  ["models"],
  ["version"],
];

describe("help", () => {
  test("of every command exits with 0, says what it does and how to call it, and fits a terminal", async () => {
    const all = await Promise.all(VERBS.map((verb) => desk.cli([...verb, "--help"])));
    for (const [index, ran] of all.entries()) {
      const verb = VERBS[index]?.join(" ") ?? "";
      expect({ verb, code: ran.code, stderr: ran.stderr }).toEqual({ verb, code: 0, stderr: "" });
      expect(ran.stdout).toStartWith(`Usage: gatehouse ${verb}`.trim());
      expect(ran.stdout).toContain("-h, --help");
      for (const line of ran.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(110);
    }
  }, 60_000);

  test("leaves nothing behind", () => {
    expect(readdirSync(desk.cwd)).toEqual([]);
  });
});

describe("wrong usage exits with 2, says what is wrong, and prints nothing on standard output", () => {
  test.each([
    ["an unknown command", ["tokn"], "Did you mean token?"],
    ["an unknown command of a group", ["token", "creat"], "Did you mean create?"],
    ["an unknown option", ["token", "list", "--jsn"], "Did you mean --json?"],
    ["no command", [], "Usage: gatehouse"],
    ["no command of a group", ["workspace"], "Usage: gatehouse workspace"],
    ["a required option that is missing", ["token", "create"], "--name"],
    ["an argument that is missing", ["task", "run", "--agent", "a"], "prompt"],
    ["an argument too many", ["token", "list", "all"], "too many arguments"],
    ["an option without its value", ["serve", "--listen"], "argument missing"],
    ["an invalid address", ["serve", "--listen", "here"], "--listen"],
    ["an invalid tier", ["task", "run", "--agent", "a", "--tier", "one", "x"], "--tier"],
    [
      "an invalid duration",
      ["token", "create", "--name", "n", "--scope", "admin", "--expires", "soon"],
      "--expires: must be a duration",
    ],
    ["an invalid scope", ["token", "create", "--name", "n", "--scope", "tasks:paint"], "tasks:paint"],
    ["neither agent nor scopes", ["token", "create", "--name", "n"], "--scope: is required"],
    ["an invalid way to list tools", ["token", "create", "--name", "n", "--tools-mode", "few"], "search"],
    ["a connector without a name", ["connector", "add", "--url", "http://x/"], "name"],
    ["a connector without a target", ["connector", "add", "one"], "--openapi"],
    ["an import with other options", ["connector", "add", "one", "--import", "f"], "--import"],
    ["a choice without options", ["connector", "add", "one", "--only", "b", "--", "c"], "--only"],
    ["an invalid workspace name", ["workspace", "create", "No Such"], "name"],
    [
      "a configuration file that does not exist",
      ["token", "list", "--config", "nowhere.yaml"],
      "nowhere.yaml",
    ],
  ])("%s", async (_, args, message) => {
    const ran = await desk.cli(args);
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 2, stdout: "" });
    expect(ran.stderr).toContain(message);
    expect(ran.stderr).not.toMatch(/\n\s+at /);
  });

  test.each([
    ["weak", "admin"],
    ["a token in another program's form", `ghp_${"a".repeat(36)}`],
    ["one character short", `gth_${"a".repeat(48)}`],
  ])("GATEHOUSE_ADMIN_TOKEN that is %s, without repeating it", async (_, token) => {
    const ran = await desk.cli(["serve", "--listen", "127.0.0.1:0"], { GATEHOUSE_ADMIN_TOKEN: token });
    expect(ran.code).toBe(2);
    expect(ran.stderr).toContain("GATEHOUSE_ADMIN_TOKEN");
    if (token !== "admin") expect(ran.stderr).not.toContain(token);
  });
});

describe("a failure exits with 1, with the next step and no stack", () => {
  test.each([
    ["a token that does not exist", ["token", "revoke", "tok_0"], "tok_0"],
    ["a workspace that does not exist", ["token", "list", "--workspace", "nowhere"], "nowhere"],
    ["an agent that does not exist", ["task", "run", "--agent", "nobody", "hello"], "nobody"],
    ["a data directory that is a file", ["token", "list", "--data", "file"], "--data"],
    ["a console without a server", ["console"], "gatehouse serve"],
  ])("%s", async (_, args, message) => {
    writeFileSync(join(desk.cwd, "file"), "");
    const ran = await desk.cli(args);
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 1, stdout: "" });
    expect(ran.stderr).toContain(message);
    expect(ran.stderr).not.toMatch(/\n\s+at /);
  });
});

describe("without a data directory", () => {
  test("version: for people, as JSON, and as an option", async () => {
    const [plain, json, option] = await Promise.all(
      [["version"], ["version", "--json"], ["--version"]].map((args) => desk.out(args)),
    );
    const parsed = JSON.parse(json ?? "") as { version: string; bun: string };
    expect(plain).toContain(parsed.version);
    expect(option?.trim()).toBe(parsed.version);
    expect(parsed.bun).toBe(Bun.version);
  });

  test("token secret: one secret, different each time, that the server accepts", async () => {
    const secrets = await Promise.all([1, 2].map(() => desk.out(["token", "secret"])));
    for (const secret of secrets) expect(secret.trimEnd()).toMatch(SECRET);
    expect(secrets[0]).not.toBe(secrets[1]);
  });

  test("config check: 0 if correct, 2 with everything that is wrong", async () => {
    writeFileSync(join(desk.cwd, "bad.yaml"), "listn: 1\nlimits: { requests_per_minute: -1 }\n");
    const [good, bad, json] = await Promise.all([
      desk.cli(["config", "check"]),
      desk.cli(["config", "check", "--config", "bad.yaml"]),
      desk.cli(["config", "check", "--config", "bad.yaml", "--json"]),
    ]);
    expect(good.code).toBe(0);
    expect(bad.code).toBe(2);
    expect(bad.stderr).toContain("listen");
    expect(bad.stderr).toContain("requests_per_minute");
    expect(json.code).toBe(2);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false });
  });

  test("config show: every value and its origin, no secret", async () => {
    const key = "sk-very-secret-key";
    const admin = (await desk.out(["token", "secret"])).trim();
    writeFileSync(join(desk.cwd, "keys.yaml"), `providers: { p: { kind: openai, api_key: ${key} } }\n`);
    for (const args of [[], ["--json"]]) {
      const shown = await desk.out(
        ["config", "show", "--config", "keys.yaml", "--listen", "127.0.0.1:99", ...args],
        {
          GATEHOUSE_ADMIN_TOKEN: admin,
        },
      );
      expect(shown).toContain("127.0.0.1:99");
      expect(shown).toContain("--listen");
      expect(shown).toContain("redacted");
      expect(shown).not.toContain(key);
      expect(shown).not.toContain(admin);
    }
  });
});
