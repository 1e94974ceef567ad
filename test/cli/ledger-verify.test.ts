/**
 * `gatehouse ledger verify`: its exit codes, its two output formats, and that a running server does not disturb it.
 */
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeScene, type Scene } from "../ledger/verify/scene.ts";
import { Vandal } from "../ledger/verify/vandal.ts";
import { WITHOUT_LONG_TEXTS } from "../support/older-schema.ts";
import { AGENT, type Desk, openDesk } from "./support.ts";

setDefaultTimeout(60_000);

let scene: Scene;
let desk: Desk;

beforeAll(async () => {
  scene = await makeScene();
});

afterAll(() => scene.remove());

beforeEach(() => {
  desk = openDesk();
  cpSync(scene.dataDir, join(desk.cwd, "gatehouse-data"), { recursive: true });
  writeFileSync(join(desk.cwd, "checkpoints"), scene.checkpoints);
  writeFileSync(join(desk.cwd, "key"), `${scene.key}\n`);
});

afterEach(() => desk.clear());

const verify = (...args: string[]) => desk.cli(["ledger", "verify", ...args]);

/** Cuts off the ledger's tail, and the checkpoints that cover it. */
function cutTail(above = 650): void {
  const dataDir = join(desk.cwd, "gatehouse-data");
  const vandal = new Vandal({ dataDir, path: join(dataDir, "gatehouse.db"), remove: () => {} });
  vandal.unguarded(() => {
    vandal.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq > ?", above);
    vandal.removeCheckpoints(above);
  });
  vandal.close();
}

describe("wrong usage exits with 2, says what is wrong, and prints nothing on standard output:", () => {
  const cases: readonly (readonly [name: string, args: readonly string[], message: string])[] = [
    ["a directory that does not exist", ["--data", "nowhere"], "nowhere"],
    ["a directory without a database", ["--data", "."], "--data"],
    ["a workspace that does not exist", ["--workspace", "nobody"], "nobody"],
    ["an invalid key", ["--key", "gatehouse/x/default+00000000+AAAA"], "--key"],
    ["a key whose id does not match", ["--key", `gatehouse/x/default+00000000+A${"A".repeat(43)}=`], "--key"],
    ["a file of a key that does not exist", ["--key", "nowhere"], "--key"],
    ["a file without a key", ["--key", "checkpoints"], "--key"],
    ["an empty file for a key", ["--key", "/dev/null"], "--key"],
    ["a file of checkpoints that does not exist", ["--checkpoint", "nowhere"], "--checkpoint"],
    ["a file without checkpoints", ["--checkpoint", "key"], "--checkpoint"],
    ["an empty file for checkpoints", ["--checkpoint", "/dev/null"], "--checkpoint"],
    ["a bundle that does not exist", ["--bundle", "nowhere"], "--bundle"],
    ["a bundle in a data directory", ["--bundle", "key", "--data", "gatehouse-data"], "--bundle"],
    ["a bundle of a workspace", ["--bundle", "key", "--workspace", "default"], "--bundle"],
  ];

  test.each(cases)("%s", async (_, args, message) => {
    const ran = await verify(...args);
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 2, stdout: "" });
    expect(ran.stderr).toContain(message);
    expect(ran.stderr).not.toMatch(/\n\s+at /);
  });
});

describe("an intact ledger exits with 0:", () => {
  test.each([
    ["with nothing else", []],
    ["with a key and checkpoints in files", ["--key", "key", "--checkpoint", "checkpoints"]],
    ["with one workspace", ["--workspace", "other"]],
  ])("%s", async (_, args) => {
    const ran = await verify(...args);
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: "" });
    expect(ran.stdout).toContain("Workspace other: holds\n");
    expect(ran.stdout.includes("Workspace default: holds\n")).toBe(!args.includes("--workspace"));
    expect(ran.stdout).toContain(
      "\n\nHolds: nothing was changed, added or removed, as far as the signatures can show.\n",
    );
    expect(ran.stdout.includes("This used only the data's own keys")).toBe(!args.includes("--key"));
  });

  test("with the key itself, from another folder, by the variable", async () => {
    const ran = await desk.cli(["ledger", "verify", "--key", scene.key], {
      GATEHOUSE_DATA: join(desk.cwd, "gatehouse-data"),
    });
    expect(ran.code).toBe(0);
    expect(ran.stdout).toContain(`${scene.key}\n`);
  });

  test("as JSON", async () => {
    const ran = await verify("--json", "--checkpoint", "checkpoints");
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(ran.stdout)).toMatchObject({
      verdict: "holds",
      findings: [],
      ledgers: [
        { workspace: "default", verdict: "holds", findings: [], facts: expect.any(Array) },
        { workspace: "other", verdict: "holds", findings: [] },
      ],
    });
  });

  test("whatever the configuration, because a copy has neither its variables nor its endpoints", async () => {
    writeFileSync(join(desk.cwd, "gatehouse-data", "gatehouse.yaml"), "nonsense: [\n");
    expect((await verify()).code).toBe(0);
  });

  test("with a file of checkpoints of which one is incomplete, which is reported", async () => {
    const torn = `${scene.checkpoints}gatehouse/0123456789abcdef/default\n77${scene.checkpoints}`;
    writeFileSync(join(desk.cwd, "torn"), torn);
    const ran = await verify("--checkpoint", "torn");
    expect(ran.code).toBe(0);
    expect(ran.stderr).toBe("gatehouse: skipped 1 incomplete checkpoint in torn\n");
  });

  test("while a server runs, and after it was killed; nothing is written", async () => {
    const server = await desk.serve();
    expect((await verify("--key", "key")).code).toBe(0);
    expect(await (await fetch(`${server.url}/metrics`)).text()).not.toMatch(
      /disturbances_total\{[^}]*\} [1-9]/,
    );
    await server.end("SIGKILL");
    const names = () => readdirSync(join(desk.cwd, "gatehouse-data")).sort();
    const before = names();
    expect((await verify("--key", "key", "--checkpoint", "checkpoints")).code).toBe(0);
    expect(names()).toEqual(before);
  });
});

describe("tampering exits with 1, and the place is reported:", () => {
  test("for people", async () => {
    cutTail();
    expect((await verify()).code).toBe(1);
    const ran = await verify("--checkpoint", "checkpoints");
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 1, stderr: "" });
    expect(ran.stdout).toContain("Workspace default: TAMPERED WITH\n");
    expect(ran.stdout).toMatch(/^ {2}! Entries 651 to \d+ are missing at the end: .* \[tail_missing\]$/m);
    expect(ran.stdout).toContain("Workspace other: holds\n");
    expect(ran.stdout).toEndWith("Tampered with: data was changed, added or removed as reported above.\n");
  });

  test("as JSON, by code and number", async () => {
    cutTail();
    const ran = await verify("--checkpoint", "checkpoints", "--json");
    expect(ran.code).toBe(1);
    expect(JSON.parse(ran.stdout)).toMatchObject({
      verdict: "tampered",
      ledgers: [
        {
          verdict: "tampered",
          findings: [
            { verdict: "tampered", code: "tail_missing", workspace: "default", seq: 651 },
            { verdict: "tampered", code: "checkpoint_missing", workspace: "default" },
          ],
        },
        { verdict: "holds" },
      ],
    });
  });

  test("without letting a stranger's text reach the terminal", async () => {
    const dataDir = join(desk.cwd, "gatehouse-data");
    const vandal = new Vandal({ dataDir, path: join(dataDir, "gatehouse.db"), remove: () => {} });
    vandal.run(`CREATE VIEW "\u001b]0;owned\u0007\u009b31m\u202e" AS SELECT * FROM ledger`);
    vandal.close();
    const ran = await verify();
    expect(ran.code).toBe(1);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
    expect(ran.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(ran.stdout).toContain("schema_foreign");
  });
});

describe("an undecided result exits with 3, and what is missing is reported:", () => {
  test("a head, in a directory from a version without signed heads", async () => {
    const dataDir = join(desk.cwd, "gatehouse-data");
    const vandal = new Vandal({ dataDir, path: join(dataDir, "gatehouse.db"), remove: () => {} });
    for (const statement of WITHOUT_LONG_TEXTS) vandal.run(statement);
    vandal.run("DROP TABLE ledger_heads");
    vandal.run("DROP TABLE ledger_node_heads");
    for (const table of ["meta", "workspaces"]) vandal.run(`ALTER TABLE ${table} DROP COLUMN seal`);
    vandal.run("PRAGMA user_version = 12");
    vandal.unmarkKey();
    vandal.close();
    const ran = await verify();
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 3, stderr: "" });
    expect(ran.stdout).toMatch(
      /^ {2}\? The data directory was written by a version .* \[schema_unsigned\]$/m,
    );
    expect(ran.stdout).toEndWith(
      "Cannot be decided: there is no sign of tampering, but the evidence named above is missing.\n",
    );
  });

  test("the right checkpoint", async () => {
    const elsewhere = scene.checkpoints.replace(/gatehouse\/[0-9a-f]{16}/g, "gatehouse/0000000000000000");
    writeFileSync(join(desk.cwd, "elsewhere"), elsewhere);
    const ran = await verify("--checkpoint", "elsewhere");
    expect(ran.code).toBe(3);
    expect(ran.stdout).toContain("no_checkpoint_of_this_ledger");
  });

  test("the program that wrote it", async () => {
    const dataDir = join(desk.cwd, "gatehouse-data");
    const vandal = new Vandal({ dataDir, path: join(dataDir, "gatehouse.db"), remove: () => {} });
    vandal.run("PRAGMA user_version = 99");
    vandal.close();
    const ran = await verify();
    expect(ran.code).toBe(3);
    expect(ran.stdout).toContain("newer Gatehouse");
  });
});

test("a bundle: it is valid, was tampered with, or is not a bundle", async () => {
  const exported = await desk.cli(["ledger", "export", "--output", "evidence.zip"]);
  expect({ code: exported.code, stderr: exported.stderr }).toEqual({ code: 0, stderr: "" });
  const whole = await verify("--bundle", "evidence.zip", "--key", "key", "--checkpoint", "checkpoints");
  expect({ code: whole.code, stderr: whole.stderr }).toEqual({ code: 0, stderr: "" });
  expect(whole.stdout).toContain("Holds:");
  const bytes = readFileSync(join(desk.cwd, "evidence.zip"));
  const broken = Buffer.from(bytes);
  const at = Math.floor(bytes.length / 3);
  broken[at] = (broken[at] ?? 0) ^ 1;
  writeFileSync(join(desk.cwd, "broken.zip"), broken);
  const changed = await verify("--bundle", "broken.zip", "--json");
  expect(changed.code).toBe(1);
  expect(JSON.parse(changed.stdout)).toMatchObject({ verdict: "tampered" });
  expect((await verify("--bundle", "key")).code).toBe(3);
});

test("a directory in which a task ran, after its server ended by itself", async () => {
  const data = join(desk.cwd, "fresh");
  mkdirSync(data, { mode: 0o700 });
  const server = await desk.serve(["--data", data]);
  const token = readFileSync(join(data, "admin.token"), "utf8").trim();
  expect((await desk.call(server, token, "POST", "/v1/agents", AGENT)).status).toBe(201);
  const task = { agent: AGENT.name, prompt: "What time is it?", tools: ["time.now"] };
  await (await desk.call(server, token, "POST", "/v1/tasks?stream=true", task)).text();
  expect(await server.end("SIGTERM")).toBe(0);
  const ran = await verify("--data", data);
  expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: "" });
  expect(ran.stdout).toMatch(/Texts +\d+ present, 0 erased on record/);
});
