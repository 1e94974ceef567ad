/**
 * The programs of docs/framework.md, saved and run as the guide describes, in a project that is set up accordingly.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as framework from "../../src/agents/index.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";

setDefaultTimeout(120_000);

const ROOT = join(import.meta.dir, "..", "..");
const guide = readFileSync(join(ROOT, "docs", "framework.md"), "utf8");
const OLLAMA = "http://127.0.0.1:11434/v1";

let folder = "";
let project = "";
let model: FakeModel;

function blocks(language: string): string[] {
  const found = guide.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "gm"));
  return [...found].map(([, block = ""]) => block);
}

/** The name in a program's first line, and the program. */
const programs = new Map(
  blocks("ts").map((text) => [text.match(/^\/\/ ([\w-]+\.ts)\n/)?.[1] ?? "without a name", text]),
);

async function shell(command: readonly string[], cwd: string, env: Record<string, string> = {}) {
  const child = Bun.spawn([...command], {
    cwd,
    env: { ...process.env, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [printed, problems] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, printed, problems };
}

/** Runs a program of the guide against the fake model. */
async function program(name: string) {
  const ran = await shell([process.execPath, name], project);
  if (ran.code !== 0) throw new Error(ran.problems);
  return ran;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-guide-"));
  project = join(folder, "my-agent");
  model = startFakeModel();
  model.script("llama3.2", (_request, index) =>
    index === 0
      ? { toolCalls: [{ name: "weather__today", arguments: { city: "Bonn" } }] }
      : { chunks: ["Yes, ", "take one."] },
  );
  symlinkSync(ROOT, join(folder, "gatehouse"));
  // Packages that would be installed from the network are linked from here. The machine's own links are not touched.
  const bun = `bun() { case "$1" in
    install) true ;;
    add) shift; for name in "$@"; do mkdir -p "node_modules/$(dirname "$name")"
           rm -rf "node_modules/$name"; ln -s "${ROOT}/node_modules/$name" "node_modules/$name"; done ;;
    init) printf '{"name":"my-agent","type":"module"}' > package.json ;;
    *) '${process.execPath}' "$@" ;;
  esac; }`;
  const [lines = ""] = blocks("sh");
  const env = { BUN_INSTALL: join(folder, ".bun") };
  mkdirSync(env.BUN_INSTALL);
  const ran = await shell(["bash", "-euo", "pipefail", "-c", `${bun}\n${lines}`], folder, env);
  if (ran.code !== 0) throw new Error(ran.problems);
  for (const [name, text] of programs) {
    writeFileSync(join(project, name), text.replace(OLLAMA, model.url));
  }
});
afterAll(async () => {
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("the programs of the guide", () => {
  test("have names, and all of them are run here", () => {
    expect([...programs.keys()]).toEqual([
      ...["first.ts", "umbrella.ts", "conversation.ts"],
      ...["parts.ts", "output.ts", "hooks.ts"],
    ]);
    expect(blocks("sh")).toHaveLength(1);
  });

  test("first.ts answers without a network", async () => {
    expect((await program("first.ts")).printed).toContain("Refunds take 14 days.");
  });

  test("umbrella.ts asks a model, calls its tool and streams the answer", async () => {
    const { printed, problems } = await program("umbrella.ts");
    expect([printed, problems]).toEqual(["Yes, take one.", ""]);
    expect(model.requests.map(({ body }) => body.messages.at(-1)?.role)).toEqual(["user", "tool"]);
  });

  test("conversation.ts continues a conversation", async () => {
    expect((await program("conversation.ts")).printed).toBe("user, assistant, user, assistant\n");
  });

  test("parts.ts sends a conversation with a text file", async () => {
    expect((await program("parts.ts")).printed).toMatch(/^input tokens: [1-9]\d*\n$/);
  });

  test("output.ts has its answer corrected until it is valid", async () => {
    model.script("llama3.2", (_request, index) => ({
      chunks: [index === 0 ? "Cologne" : '{"city":"Cologne"}'],
    }));
    expect((await program("output.ts")).printed).toBe('{\n  city: "Cologne",\n}\n');
  });

  test("hooks.ts refuses the third call", async () => {
    expect((await program("hooks.ts")).printed.trim().split("\n")).toEqual([
      "builtin/extractive succeeded true",
      "first succeeded",
      "second succeeded",
      "third denied",
      "builtin/extractive succeeded true",
      "steps: 2",
    ]);
  });

  test("have no type errors", async () => {
    const options = { noEmit: true, strict: true, skipLibCheck: true, types: ["bun-types"] };
    const modules = { module: "preserve", moduleResolution: "bundler", customConditions: ["bun"] };
    const compilerOptions = {
      ...options,
      ...modules,
      target: "esnext",
      allowImportingTsExtensions: true,
      typeRoots: [join(ROOT, "node_modules")],
      resolveJsonModule: true,
    };
    const file = join(project, "tsconfig.json");
    writeFileSync(file, JSON.stringify({ compilerOptions, files: [...programs.keys()] }));
    const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
    const ran = await shell([process.execPath, "--bun", compiler, "--project", file], project);
    expect(ran).toEqual({ code: 0, printed: "", problems: "" });
  });
});

test("the guide names only existing events, functions and options", () => {
  const events = readFileSync(join(ROOT, "src/agents/events.ts"), "utf8");
  const declared = [...events.matchAll(/readonly type: "([\w.]+)"/g)].map(([, type]) => type);
  const [, table = ""] = guide.split("| event | meaning |");
  const named = [...(table.split("\n\n")[0] ?? "").matchAll(/`((?:step|model|output|tool|agent)\.\w+)`/g)];
  expect(named.map(([, type]) => type).sort()).toEqual(declared.sort());
  const imported = [...guide.matchAll(/^import \{([^}]+)\} from "gatehouse\/agents"/gm)].flatMap(
    ([, names = ""]) => names.split(",").map((name) => name.trim()),
  );
  const values = imported.filter((name) => !name.startsWith("type "));
  expect(values.filter((name) => !(name in framework))).toEqual([]);
  const options = readFileSync(join(ROOT, "src/agents/options.ts"), "utf8");
  for (const [, name] of guide.matchAll(/`(max\w+)`/g)) expect(options).toContain(`readonly ${name}?`);
});
