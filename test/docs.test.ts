/**
 * README and docs as a newcomer uses them: their own lines, pasted into one shell, one page after another. Only the
 * address differs, because the test needs a free port.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SECRET } from "./cli/support.ts";
import { type FakeModel, startFakeModel } from "./support/fake-model.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "..");
const main = join(root, "src/main.ts");
const ADDRESS = "http://127.0.0.1:8420";
const DOCS = readdirSync(join(root, "docs"))
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`);
/** Pages with lines for a shell, in this order. The first creates the TOKEN and the agent that the others use. */
const PASTED = [
  "README.md",
  "docs/security-model.md",
  "docs/connectors.md",
  "docs/vault.md",
  "docs/tasks.md",
  "docs/evidence.md",
  "docs/operating.md",
  "docs/schedules-and-webhooks.md",
  "docs/command-line.md",
  "docs/models.md",
] as const;
/** Blocks that are run elsewhere: their page, how they begin, and where. */
const ELSEWHERE = [
  ["README.md", "scripts/start", "test/docs.test.ts"],
  ["CONTRIBUTING.md", "scripts/start", "test/docs.test.ts"],
  ["docs/schedules-and-webhooks.md", "curl -sN", "test/docs.test.ts"],
  ["docs/connectors.md", "gatehouse connector add", "test/cli/mcp/docs.test.ts"],
  ["docs/connectors.md", "gatehouse token create", "test/cli/mcp/docs.test.ts"],
  ["docs/models.md", "ANTHROPIC_BASE_URL=", "test/clients/pasted.test.ts"],
  ["docs/models.md", "codex -c", "test/clients/pasted.test.ts"],
  ["docs/scaling.md", "sudo -u postgres", "test/nodes/scaling.test.ts"],
  ["docs/scaling.md", "export GATEHOUSE_STORE", "test/nodes/scaling.test.ts"],
  ["docs/scaling.md", "gatehouse store copy --data", "test/nodes/scaling.test.ts"],
  ["docs/scaling.md", "gatehouse serve", "test/nodes/scaling.test.ts"],
  ["docs/scaling.md", "gatehouse nodes", "test/nodes/scaling.test.ts"],
  ["docs/scaling.md", "gatehouse store copy --from", "test/nodes/scaling.test.ts"],
  ["docs/framework.md", "(cd gatehouse", "test/agents/guide.test.ts"],
] as const;

let folder = "";
let server: Bun.Subprocess | undefined;
let url = "";
/** Replaces OpenAI. */
let upstream: FakeModel;

function page(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

function blocks(path: string, language: string): string[] {
  const found = page(path).matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "gm"));
  return [...found].map(([, block = ""]) => block);
}

function isElsewhere(path: string, block: string): boolean {
  return ELSEWHERE.some(([page, start]) => page === path && block.startsWith(start));
}

/** Runs lines in bash, with the program as `gatehouse`. */
async function shell(lines: string): Promise<{ code: number; printed: string; problems: string }> {
  const program = `gatehouse() { '${process.execPath}' '${main}' "$@"; }`;
  const child = Bun.spawn(
    ["bash", "-euo", "pipefail", "-c", `${program}\n${lines.replaceAll(ADDRESS, url)}`],
    {
      cwd: folder,
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const [printed, problems] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, printed, problems };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-docs-"));
  // The folder that docs/vault.md adds.
  mkdirSync(join(folder, "docs"));
  writeFileSync(join(folder, "docs/shipping.md"), "# Shipping\n\nParcels take three days.\n");
  upstream = startFakeModel({ apiKey: "sk-test", fallback: { chunks: ["Good ", "evening"] } });
  const [yaml = ""] = blocks("docs/models.md", "yaml");
  const provider = `base_url: "${upstream.url}", api_key: sk-test`;
  mkdirSync(join(folder, "gatehouse-data"), { mode: 0o700 });
  writeFileSync(join(folder, "gatehouse-data/gatehouse.yaml"), yaml.replace(/api_key: "[^"]*"/, provider));
  // Programs run outside the repository, as their readers run them, with its packages next to them.
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
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
  await upstream.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The output of each block, by page. */
async function paste(): Promise<Map<string, string[]>> {
  const script = PASTED.flatMap((path) => [
    `echo ==== ${path}`,
    ...blocks(path, "sh").filter((block) => !isElsewhere(path, block)),
  ]).join("\necho ----\n");
  const { code, printed, problems } = await shell(script);
  if (code !== 0) throw new Error(`${printed}\n${problems}`);
  const pages = printed.split(/^==== /m).slice(1);
  return new Map(
    pages.map((each) => {
      const [path = "", ...rest] = each.split("\n");
      const outputs = rest.join("\n").split("----\n").slice(1);
      return [path, outputs.map((output) => output.trim())];
    }),
  );
}

/** Codes of the errors that lines printed. */
function errorsIn(outputs: readonly string[]): unknown[] {
  return outputs
    .flatMap((output) => output.split("\n"))
    .filter((line) => line.startsWith('{"type":"urn:gatehouse:problem:'))
    .map((line) => (JSON.parse(line) as { code: string }).code);
}

test("every line for a shell works, pasted one after another", async () => {
  const printed = await paste();
  expect([...printed.keys()]).toEqual([...PASTED]);

  const [, agent = "", events = "", results = "", policy = "", secret = ""] = printed.get("README.md") ?? [];
  expect(JSON.parse(agent)).toMatchObject({ name: "helper", status: "active" });
  expect(events).toContain("event: output.delta");
  expect(events).toMatch(/event: task\.finished\ndata: .*"status":"succeeded"/);
  const [tasks = "", ledger = ""] = results.split("\n");
  expect(JSON.parse(tasks).data).toMatchObject([{ agent: "helper", tools_called: [{ tool: "time.now" }] }]);
  const actions = (JSON.parse(ledger).data as { action: string }[]).map(({ action }) => action);
  expect(actions).toEqual(expect.arrayContaining(["model.call", "tool.call"]));
  expect(JSON.parse(policy)).toMatchObject({ budget: { credits_per_day: 50 } });
  expect(secret).toMatch(SECRET);

  const [clerk = "", refused = "", attempts = ""] = printed.get("docs/security-model.md") ?? [];
  expect(JSON.parse(clerk)).toMatchObject({ name: "clerk", approvals: ["time.*"] });
  expect(errorsIn([refused])).toEqual(["agent_forbidden", "tool_forbidden", "scope_missing"]);
  expect(JSON.parse(attempts).data).toMatchObject([
    { action: "token.list", outcome: "denied" },
    { action: "task.dispatch", code: "tool_forbidden" },
    { action: "task.dispatch", code: "agent_forbidden" },
  ]);

  const [asking = "", deciding = "", calling = ""] = printed.get("docs/connectors.md") ?? [];
  expect(JSON.parse(asking.split("\n").at(-1) ?? "")).toMatchObject({ status: "awaiting_approval" });
  expect(JSON.parse(deciding.split("\n").at(-1) ?? "").data).toMatchObject([
    { agent: "careful", status: "approved" },
  ]);
  expect(calling).toContain("Europe/Berlin");

  const [added = "", addedFolder = "", replaced = "", search = "", answer = "", deleted] =
    printed.get("docs/vault.md") ?? [];
  const { id } = JSON.parse(added);
  expect(JSON.parse(added)).toMatchObject({ title: "Refund policy", scope: "support", chunks: 1 });
  expect(addedFolder).toBe("added 1, replaced 0, unchanged 0, skipped 0, failed 0");
  expect(JSON.parse(replaced)).toMatchObject({ id, metadata: { language: "en" } });
  expect(JSON.parse(search).results).toMatchObject([{ document_id: id }]);
  expect(answer).toMatch(/^data: .*"status":"succeeded".*\bwithin 14 days\b/m);
  expect(answer).toMatch(/\[1\] Refund policy/);
  expect(deleted).toBe("");

  const [entries = "", verified = "", , bundle = ""] = printed.get("docs/evidence.md") ?? [];
  expect(JSON.parse(entries).data).toHaveLength(5);
  expect(verified.match(/holds/gi)?.length ?? 0).toBeGreaterThanOrEqual(2);
  expect(bundle).toMatch(/holds/i);

  const [restored = "", stopped = "", limits = "", budget = "", watched = ""] =
    printed.get("docs/operating.md") ?? [];
  expect(restored).toMatch(/^gatehouse-backup\.tar\n[\s\S]*holds[\s\S]*\nRestored to restored, as of /);
  const statuses = stopped.split("\n").map((line) => JSON.parse(line).status);
  expect(statuses).toEqual(["stopped", "active"]);
  expect(JSON.parse(limits)).toMatchObject({ limits: { enforcement: "enforced" } });
  expect(JSON.parse(budget)).toMatchObject({ budget: { credits_per_month: 1_000 } });
  expect(watched).toContain("gatehouse_http_requests_total");

  const [schedule = "", webhooks = ""] = printed.get("docs/schedules-and-webhooks.md") ?? [];
  expect(JSON.parse(schedule)).toMatchObject({ name: "morning report", status: "active" });
  const [listed = "", deliveries = ""] = webhooks.split("\n");
  expect(JSON.parse(listed)).toHaveProperty("url", null);
  expect(JSON.parse(deliveries)).toHaveProperty("data");

  const [, tokens = "", workspaces = "", everything = "", lookedUp = ""] =
    printed.get("docs/command-line.md") ?? [];
  expect(tokens).toContain("ada");
  expect(workspaces).toMatch(/^acme\n.*stopped\n.*active\n/);
  expect(everything).toContain("default\tactive");
  expect(lookedUp).toContain("Shipping");

  const [writer = "", fleet = "", models = "", forbidden = "", recorded = ""] =
    printed.get("docs/models.md") ?? [];
  expect(JSON.parse(writer)).toMatchObject({ name: "writer", tier_policy: { tiers: [2] } });
  expect(JSON.parse(fleet)).toMatchObject({ choices: [{ message: { content: "Good evening" } }] });
  const [list = "", model = ""] = models.split("\n");
  const usable = JSON.parse(list).data.filter((each: { allowed: boolean }) => each.allowed);
  expect(usable.map((each: { id: string }) => each.id)).toEqual(["gpt-5", "openai/gpt-5-mini", "tier:2"]);
  expect(JSON.parse(model)).toMatchObject({ id: "openai/gpt-5-mini", object: "model", allowed: true });
  expect(forbidden).toMatch(/^HTTP\/1\.1 403/);
  expect(forbidden.toLowerCase()).toContain("gatehouse-code: tier_forbidden");
  expect(forbidden).toContain('{"error":{"message"');
  expect(JSON.parse(recorded).data).toMatchObject([
    { phase: "intent", agent: "writer", detail: { dialect: "chat_completions" } },
    { phase: "outcome", outcome: "succeeded", model: "openai/gpt-5-mini" },
    { outcome: "denied", code: "tier_forbidden" },
  ]);

  const others = [...printed].filter(([path]) => path !== "docs/security-model.md");
  expect(errorsIn(others.flatMap(([, outputs]) => outputs))).toEqual([]);
});

test("docs/schedules-and-webhooks.md shows how to listen to a workspace", async () => {
  const [lines = ""] = blocks("docs/schedules-and-webhooks.md", "sh").filter((block) =>
    block.startsWith("curl -sN"),
  );
  const script = `TOKEN=$(cat gatehouse-data/admin.token)\nexec ${lines.replace(ADDRESS, url)}`;
  const curl = Bun.spawn(["bash", "-euc", script], { cwd: folder, stdout: "pipe", stderr: "ignore" });
  let heard = "";
  for await (const bytes of curl.stdout) {
    heard += new TextDecoder().decode(bytes);
    if (heard.includes("event: feed.open")) break;
  }
  curl.kill();
  await curl.exited;
  expect(heard).toContain("event: feed.open");
});

test.each(ELSEWHERE)("the lines of %s that begin with %s exist, and are run by %s", (path, start, file) => {
  expect(blocks(path, "sh").filter((block) => block.startsWith(start))).toHaveLength(1);
  expect(readFileSync(join(root, file), "utf8")).toContain(path);
});

test("no other page has lines for a shell", () => {
  const pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...DOCS].filter((path) =>
    blocks(path, "sh").some((block) => !isElsewhere(path, block)),
  );
  expect(pages.sort()).toEqual([...PASTED].sort());
});

test("the scripts that README.md and CONTRIBUTING.md name can be run", async () => {
  const named = ["README.md", "CONTRIBUTING.md"].flatMap((path) =>
    [...page(path).matchAll(/\bscripts\/\w+/g)].map(([script]) => script),
  );
  expect([...new Set(named)].sort()).toEqual(
    ["bench", "build", "prices", "soak", "start", "test"].map((name) => `scripts/${name}`),
  );
  for (const script of new Set(named)) accessSync(join(root, script), constants.X_OK);
  for (const script of ["bench", "prices", "soak", "start"]) {
    const { code, printed } = await shell(`'${join(root, "scripts", script)}' --help`);
    expect([code, printed]).toEqual([0, expect.stringContaining("Usage:")]);
  }
});

test("the client's form in the README is that of docs/connectors.md", () => {
  const [form = ""] = blocks("README.md", "json");
  expect(blocks("docs/connectors.md", "json")).toContain(form);
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

test("docs/command-line.md lists every command, and no other", async () => {
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

test("every command and script that a page names exists", async () => {
  const pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "src/README.md", ...DOCS]
    .map(page)
    .join("\n");
  const named = [...pages.matchAll(/`gatehouse ([a-z][a-z-]*(?: [a-z][a-z-]*)?)/g)].map(
    ([, words = ""]) => words,
  );
  const verbs = [...new Set(named)].sort();
  expect(verbs.length).toBeGreaterThan(15);
  const usage = await Promise.all(
    verbs.map(async (words) => (await shell(`gatehouse ${words} --help`)).printed.split("\n")[0] ?? ""),
  );
  expect(usage).toEqual(
    verbs.map((words) => expect.stringMatching(new RegExp(`^Usage: gatehouse ${words}\\b`))),
  );
  const scripts = JSON.parse(page("package.json")).scripts as Record<string, string>;
  for (const [, script = ""] of pages.matchAll(/`bun run (\w+)`/g)) expect(scripts).toHaveProperty(script);
});
