/**
 * The lines for clients that docs/models.md and the console's token page show, pasted into files and a shell as a reader
 * would. Only the address and the provider differ. Claude Code and Codex are stand-ins here, which send what these
 * programs send for the same settings; test/clients/programs has the programs themselves.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { modelSnippetsOf } from "../../src/console/pages/settings/developers/model-snippets.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { startToolProvider, type ToolProvider } from "./provider.ts";

setDefaultTimeout(60_000);

const ROOT = join(import.meta.dir, "..", "..");
const DOCS = readFileSync(join(ROOT, "docs/models.md"), "utf8");
const ADDRESS = "http://127.0.0.1:8420";
const CHAT = "/v1/chat/completions";
const RESPONSES = "/v1/responses";
const ANSWER = "The tool returned: nothing";

/** A stand-in for Claude Code, which reads these variables. */
const CLAUDE = `#!/usr/bin/env bun
import Anthropic from "@anthropic-ai/sdk";
const { ANTHROPIC_BASE_URL: baseURL, ANTHROPIC_AUTH_TOKEN: authToken } = process.env;
const client = new Anthropic({ baseURL, authToken, apiKey: null });
const model = process.argv[process.argv.indexOf("--model") + 1];
const stream = client.messages.stream({ model, max_tokens: 100, messages: [{ role: "user", content: "Hi" }] });
console.log(await stream.finalText());
`;
/** A stand-in for Codex, which reads these settings from its flags and its file. */
const CODEX = `#!/usr/bin/env bun
import { existsSync, readFileSync } from "node:fs";
import OpenAI from "openai";
const file = process.env.CODEX_HOME + "/config.toml";
const settings = existsSync(file) ? Bun.TOML.parse(readFileSync(file, "utf8")) : { model_providers: {} };
const flags = process.argv.slice(2);
for (let at = 0; at < flags.length; at += 2) {
  if (flags[at] === "--model") settings.model = flags[at + 1];
  if (flags[at] !== "-c") continue;
  const [, name, value] = /^([^=]+)=(.*)$/.exec(flags[at + 1]);
  const [group, one] = name.split(".");
  // A value that is not TOML is a string.
  if (one) settings[group][one] = Bun.TOML.parse("value = " + value).value;
  else settings[group] = value;
}
const { base_url: baseURL, env_key: key, wire_api: api } = settings.model_providers[settings.model_provider];
if (api !== "responses") throw new Error("Codex speaks no other API");
const client = new OpenAI({ baseURL, apiKey: process.env[key] });
const stream = await client.responses.create({ model: settings.model, input: "Hi", stream: true, store: false });
for await (const event of stream) if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
`;

let provider: ToolProvider;
let gateway: TestGateway;
let secret: string;
let folder: string;

beforeAll(async () => {
  provider = startToolProvider({ tool: "unused", input: {} });
  const [yaml = ""] = blocks("yaml");
  const upstream = `base_url: "${provider.url}", api_key: sk-upstream`;
  gateway = await startGateway({ yaml: yaml.replace(/api_key: "[^"]*"/, upstream) });
  await gateway.agent("writer", { tier_policy: { tiers: [2] } });
  secret = await gateway.token({ agent: "writer" });
  // Lines are pasted outside of the repository, with the clients' packages installed.
  folder = mkdtempSync(join(tmpdir(), "gatehouse-pasted-"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  mkdirSync(join(folder, "bin"));
  for (const [name, text] of [
    ["claude", CLAUDE],
    ["codex", CODEX],
  ] as const) {
    writeFileSync(join(folder, "bin", name), text);
    chmodSync(join(folder, "bin", name), 0o755);
  }
});
afterAll(async () => {
  await gateway.stop();
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
});

function blocks(language: string): string[] {
  const found = DOCS.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "gm"));
  return [...found].map(([, block = ""]) => block);
}

function documented(language: string, start: string): string {
  const [block, ...more] = blocks(language).filter((each) => each.includes(start));
  if (block === undefined || more.length > 0)
    throw new Error(`docs/models.md has not one block with ${start}`);
  return block.replaceAll(ADDRESS, gateway.url);
}

function shown(id: string): string {
  const snippet = modelSnippetsOf({ secret, origin: gateway.url, model: "tier:2" }).find(
    (one) => one.id === id,
  );
  if (!snippet) throw new Error(`the console has no lines for ${id}`);
  return snippet.text;
}

async function paste(language: string, text: string, variables: object): Promise<string> {
  const file = join(folder, `${Bun.randomUUIDv7()}.ts`);
  if (language === "ts") writeFileSync(file, text);
  const command = language === "ts" ? [process.execPath, file] : ["sh", "-c", text];
  const child = Bun.spawn(command, {
    cwd: folder,
    env: { PATH: `${join(folder, "bin")}:${join(process.execPath, "..")}:${process.env.PATH}`, ...variables },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, error, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${text}\nended with ${code}: ${error}`);
  return out;
}

/** The calls that the agent's clients have made, as recorded in the ledger. */
async function calls(): Promise<unknown[]> {
  const { body } = await gateway.call("GET", "/v1/ledger?action=model.call&agent=writer&limit=200");
  return body.data
    .filter(({ phase }: { phase: string }) => phase === "outcome")
    .map(({ outcome, model, detail }: { outcome: string; model: string; detail: { dialect: string } }) => {
      return [outcome, model, detail.dialect];
    });
}

const CLIENTS = [
  ["openai", "ts", "chat.completions.create", CHAT, "chat_completions"],
  ["ai-sdk", "ts", 'from "ai"', CHAT, "chat_completions"],
  ["langchain", "ts", 'from "@langchain/openai"', CHAT, "chat_completions"],
  ["anthropic", "ts", 'from "@anthropic-ai/sdk"', RESPONSES, "messages"],
  ["claude-code", "sh", "claude --model", RESPONSES, "messages"],
  ["codex", "sh", "codex -c", RESPONSES, "responses"],
] as const;

describe.each(CLIENTS)("%s", (id, language, start, path, dialect) => {
  test.each([
    ["docs/models.md", () => documented(language, start), () => ({ GATEHOUSE_TOKEN: secret })],
    ["the console, with nothing in the environment", () => shown(id), () => ({})],
  ])("the lines of %s get an answer through the gate", async (_where, text, variables) => {
    const before = await calls();
    const sent = provider.paths.length;
    expect(await paste(language, text(), variables())).toContain(ANSWER);
    expect(provider.paths.slice(sent)).toEqual([path]);
    expect((await calls()).slice(before.length)).toEqual([["succeeded", "openai/gpt-5-mini", dialect]]);
  });
});

test("Codex's settings in its file lead to the same", async () => {
  const home = join(folder, "codex-home");
  mkdirSync(home);
  writeFileSync(join(home, "config.toml"), documented("toml", "model_provider"));
  const variables = { GATEHOUSE_TOKEN: secret, CODEX_HOME: home };
  expect(await paste("sh", "codex", variables)).toContain(ANSWER);
  expect((await calls()).at(-1)).toEqual(["succeeded", "openai/gpt-5-mini", "responses"]);
});

test("the lines that continue a response, read it and delete it work as they are written", async () => {
  const before = (await calls()).length;
  const program = `${documented("ts", "previous_response_id")}\nconsole.log(second.output_text);`;
  expect(await paste("ts", program, { GATEHOUSE_TOKEN: secret })).toContain(ANSWER);
  const made = (await calls()).slice(before);
  expect(made).toEqual(Array(2).fill(["succeeded", "openai/gpt-5-mini", "responses"]));
});

test("the code for a background response works as written", async () => {
  const program = `${documented("ts", "background: true")}\nconsole.log(status);`;
  const [status = "", ...rest] = (await paste("ts", program, { GATEHOUSE_TOKEN: secret }))
    .trim()
    .split("\n")
    .reverse();
  expect(["queued", "in_progress", "completed"]).toContain(status);
  expect(rest.at(0)).toBe("response.completed");
});

test("each client that the console offers has its section in docs/models.md", () => {
  const offered = modelSnippetsOf({ secret: "gth_x", origin: ADDRESS, model: null });
  expect(offered.map(({ id }) => id).sort()).toEqual(CLIENTS.map(([id]) => id).sort());
  expect([...DOCS.matchAll(/^### (.*)$/gm)].map(([, title]) => title)).toEqual([
    ...["OpenAI's library", "AI SDK", "LangChain", "Anthropic's library", "Claude Code", "Codex"],
  ]);
});
