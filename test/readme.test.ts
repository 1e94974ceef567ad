import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The README as a newcomer uses it: its own lines, pasted into one shell. Only the address differs, to get a free port. */
const root = join(import.meta.dir, "..");
const readme = readFileSync(join(root, "README.md"), "utf8");
const main = join(root, "src/main.ts");
const ADDRESS = "http://127.0.0.1:8420";

let folder = "";
let server: Bun.Subprocess | undefined;
let url = "";

function blocks(language: string): string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "gm"))].map(
    (match) => match[1] ?? "",
  );
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-readme-"));
  server = Bun.spawn(["bun", main, "serve", "--listen", "127.0.0.1:0"], {
    cwd: folder,
    stdout: "ignore",
    stderr: "ignore",
  });
  const runtime = join(folder, "gatehouse-data/server.json");
  for (let tries = 0; !existsSync(runtime) && tries < 200; tries++) await Bun.sleep(50);
  url = (JSON.parse(readFileSync(runtime, "utf8")) as { url: string }).url;
});

afterAll(async () => {
  server?.kill("SIGTERM");
  await server?.exited;
  rmSync(folder, { recursive: true, force: true });
});

test("the curl lines work, pasted one after another", async () => {
  const lines = blocks("sh").filter((block) => block.includes("TOKEN"));
  expect(lines.length).toBeGreaterThanOrEqual(5);
  const script = lines.join("\necho ----\n").replaceAll(ADDRESS, url);
  const shell = Bun.spawn(["bash", "-euo", "pipefail", "-c", script], {
    cwd: folder,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [, agent = "", events = "", results = "", knowledge = "", answer = "", ...more] = (
    await new Response(shell.stdout).text()
  ).split("----\n");
  expect(await shell.exited).toBe(0);
  const [tasks = "", ledger = ""] = results.trim().split("\n");
  expect(JSON.parse(agent)).toMatchObject({ name: "helper", status: "active" });
  expect(events).toContain("event: output.delta");
  expect(events).toMatch(/event: task\.finished\ndata: .*"status":"succeeded"/);
  expect(JSON.parse(tasks).data).toMatchObject([{ agent: "helper", tools_called: [{ tool: "time.now" }] }]);
  const actions = (JSON.parse(ledger).data as { action: string }[]).map((entry) => entry.action);
  expect(actions).toContain("model.call");
  expect(actions).toContain("tool.call");
  const [document = "", search = ""] = knowledge.trim().split("\n");
  expect(JSON.parse(document)).toMatchObject({ title: "Refund policy", scope: "support", chunks: 1 });
  expect(JSON.parse(search).results).toMatchObject([{ document_id: JSON.parse(document).id }]);
  expect(answer).toMatch(/^data: .*"status":"succeeded".*\bwithin 14 days\b/m);
  expect(answer).toMatch(/\[1\] Refund policy/);
  const rest = more.map((each) => JSON.parse(each) as object);
  expect(rest).toContainEqual(expect.objectContaining({ name: "morning report", status: "active" }));
  expect(rest).toContainEqual(expect.objectContaining({ budget: { credits_per_day: 50 } }));
});

test("the folder of the README is added", async () => {
  const line = blocks("sh").find((block) => block.startsWith("gatehouse vault add")) ?? "";
  mkdirSync(join(folder, "docs"));
  writeFileSync(join(folder, "docs/shipping.md"), "# Shipping\n\nParcels take three days.\n");
  const [, ...args] = line.trim().split(" ");
  const add = Bun.spawn(["bun", main, ...args], { cwd: folder, stdout: "pipe", stderr: "pipe" });
  expect(await new Response(add.stdout).text()).toBe(
    "added 1, replaced 0, unchanged 0, skipped 0, failed 0\n",
  );
  expect(await add.exited).toBe(0);
});

test("the configuration of the README is a right one", async () => {
  const [yaml = ""] = blocks("yaml");
  const file = join(folder, "readme.yaml");
  writeFileSync(file, yaml);
  const check = Bun.spawn(["bun", main, "config", "check", "--config", file], {
    cwd: folder,
    env: { ...process.env, OPENAI_API_KEY: "sk-test" },
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(await new Response(check.stderr).text()).toBe("");
  expect(await check.exited).toBe(0);
});

test("the verbs that the README lists are those that there are", async () => {
  const help = Bun.spawn(["bun", main, "--help"], { cwd: folder, stdout: "pipe" });
  const text = await new Response(help.stdout).text();
  const [, commands = ""] = text.split("Commands:");
  const there = [...commands.matchAll(/^ {2}([\w-]+)/gm)]
    .map(([, verb]) => verb)
    .filter((verb) => verb !== "help");
  const listed = [...readme.matchAll(/^\| `gatehouse ([\w-]+)/gm)].map(([, verb]) => verb);
  expect([...new Set(listed)].sort()).toEqual(
    [...new Set(there.filter((verb) => verb !== "gatehouse"))].sort(),
  );
  expect(listed.length).toBeGreaterThan(5);
});
