/**
 * README and docs as a newcomer uses them: their own lines, pasted into one shell, one page after another. Only the
 * address differs, because the test needs a free port.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const root = join(import.meta.dir, "..");
const main = join(root, "src/main.ts");
const ADDRESS = "http://127.0.0.1:8420";
const DOCS = readdirSync(join(root, "docs"))
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`);
const PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "src/README.md", ...DOCS];
/** Pages with lines for a shell that has a TOKEN. The first page creates the agent that the others use. */
const PASTED = [
  "README.md",
  "docs/vault.md",
  "docs/evidence.md",
  "docs/operating.md",
  "docs/schedules-and-webhooks.md",
] as const;
const README_LIMIT = 8_000;

let folder = "";
let server: Bun.Subprocess | undefined;
let url = "";

function page(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

function blocks(path: string, language: string): string[] {
  const found = page(path).matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "gm"));
  return [...found].map(([, block = ""]) => block);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-docs-"));
  server = Bun.spawn(["bun", main, "serve", "--listen", "127.0.0.1:0"], {
    cwd: folder,
    stdout: "ignore",
    stderr: "ignore",
  });
  const runtime = join(folder, "gatehouse-data/server.json");
  for (let tries = 0; !existsSync(runtime) && tries < 400; tries++) await Bun.sleep(50);
  url = (JSON.parse(readFileSync(runtime, "utf8")) as { url: string }).url;
});

afterAll(async () => {
  server?.kill("SIGTERM");
  await server?.exited;
  rmSync(folder, { recursive: true, force: true });
});

/** The output of each line with a TOKEN, by page. */
async function paste(): Promise<Map<string, string[]>> {
  const script = PASTED.flatMap((path) => [
    `echo ==== ${path}`,
    ...blocks(path, "sh").filter((block) => block.includes("TOKEN")),
  ]).join("\necho ----\n");
  const shell = Bun.spawn(["bash", "-euo", "pipefail", "-c", script.replaceAll(ADDRESS, url)], {
    cwd: folder,
    stdout: "pipe",
    stderr: "pipe",
  });
  const text = await new Response(shell.stdout).text();
  expect(await shell.exited).toBe(0);
  const pages = text.split(/^==== /m).slice(1);
  return new Map(
    pages.map((each) => {
      const [path = "", ...rest] = each.split("\n");
      const outputs = rest.join("\n").split("----\n").slice(1);
      return [path, outputs.map((output) => output.trim())];
    }),
  );
}

test("the shell lines work when pasted one after another", async () => {
  const printed = await paste();
  expect([...printed.keys()]).toEqual([...PASTED]);

  const [, agent = "", events = "", results = "", policy = ""] = printed.get("README.md") ?? [];
  expect(JSON.parse(agent)).toMatchObject({ name: "helper", status: "active" });
  expect(events).toContain("event: output.delta");
  expect(events).toMatch(/event: task\.finished\ndata: .*"status":"succeeded"/);
  const [tasks = "", ledger = ""] = results.split("\n");
  expect(JSON.parse(tasks).data).toMatchObject([{ agent: "helper", tools_called: [{ tool: "time.now" }] }]);
  const actions = (JSON.parse(ledger).data as { action: string }[]).map(({ action }) => action);
  expect(actions).toEqual(expect.arrayContaining(["model.call", "tool.call"]));
  expect(JSON.parse(policy)).toMatchObject({ budget: { credits_per_day: 50 } });

  const [document = "", search = "", answer = ""] = printed.get("docs/vault.md") ?? [];
  expect(JSON.parse(document)).toMatchObject({ title: "Refund policy", scope: "support", chunks: 1 });
  expect(JSON.parse(search).results).toMatchObject([{ document_id: JSON.parse(document).id }]);
  expect(answer).toMatch(/^data: .*"status":"succeeded".*\bwithin 14 days\b/m);
  expect(answer).toMatch(/\[1\] Refund policy/);

  const [entries = ""] = printed.get("docs/evidence.md") ?? [];
  expect(JSON.parse(entries).data).toHaveLength(5);
  const [workspace = ""] = printed.get("docs/operating.md") ?? [];
  expect(JSON.parse(workspace)).toMatchObject({ budget: { credits_per_month: 1_000 } });
  const [schedule = "", webhooks = ""] = printed.get("docs/schedules-and-webhooks.md") ?? [];
  expect(JSON.parse(schedule)).toMatchObject({ name: "morning report", status: "active" });
  const [listed = "", deliveries = ""] = webhooks.split("\n");
  expect(JSON.parse(listed)).toHaveProperty("url", null);
  expect(JSON.parse(deliveries)).toHaveProperty("data");
});

test("a folder is added as docs/vault.md shows", async () => {
  const line = blocks("docs/vault.md", "sh").find((block) => block.startsWith("gatehouse vault add")) ?? "";
  mkdirSync(join(folder, "docs"));
  writeFileSync(join(folder, "docs/shipping.md"), "# Shipping\n\nParcels take three days.\n");
  const [, ...args] = line.trim().split(" ");
  const add = Bun.spawn(["bun", main, ...args], { cwd: folder, stdout: "pipe", stderr: "pipe" });
  expect(await new Response(add.stdout).text()).toBe(
    "added 1, replaced 0, unchanged 0, skipped 0, failed 0\n",
  );
  expect(await add.exited).toBe(0);
});

test("evidence is verified and exported as docs/evidence.md shows", async () => {
  const [verifying = "", exporting = ""] = blocks("docs/evidence.md", "sh").filter((block) =>
    block.startsWith("gatehouse"),
  );
  const program = `gatehouse() { bun '${main}' "$@"; }`;
  const lines = `${verifying}\n${exporting}`
    .replace("gatehouse ledger checkpoint", "gatehouse ledger checkpoint > kept.txt")
    .replace("'gatehouse/…'", '"$(gatehouse ledger key)"')
    .replace("2026-01-01", "2020-01-01")
    .replace("2026-04-01", "2099-01-01");
  const shell = Bun.spawn(["bash", "-euo", "pipefail", "-c", `${program}\n${lines}`], {
    cwd: folder,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [printed, problems] = await Promise.all([
    new Response(shell.stdout).text(),
    new Response(shell.stderr).text(),
  ]);
  expect([await shell.exited, problems]).toEqual([0, expect.not.stringContaining("rror")]);
  expect(printed.match(/holds/gi)?.length ?? 0).toBeGreaterThanOrEqual(3);
});

test("the configuration of the README is valid", async () => {
  const [yaml = ""] = blocks("README.md", "yaml");
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

test("docs/command-line.md lists every verb, and no other", async () => {
  const help = Bun.spawn(["bun", main, "--help"], { cwd: folder, stdout: "pipe" });
  const [, commands = ""] = (await new Response(help.stdout).text()).split("Commands:");
  const verbs = [...commands.matchAll(/^ {2}([\w-]+)/gm)].map(([, verb]) => verb);
  const listed = [...page("docs/command-line.md").matchAll(/^\| `gatehouse ([\w-]+)/gm)].map(
    ([, verb]) => verb,
  );
  const isVerb = (verb: string | undefined) => verb !== "help" && verb !== "gatehouse";
  expect([...new Set(listed)].sort()).toEqual([...new Set(verbs.filter(isVerb))].sort());
  expect(listed.length).toBeGreaterThan(5);
});

describe("pages", () => {
  test("the README is short", () => {
    expect(page("README.md").length).toBeLessThanOrEqual(README_LIMIT);
  });

  test.each(PAGES)("%s links only to existing files", (path) => {
    const links = [...page(path).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, link = ""]) => link);
    expect(links.filter((link) => !existsSync(join(root, dirname(path), link)))).toEqual([]);
  });
});
