/** Issuing a token in the console: the snippets shown once work as they are, and no trace of the secret remains. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Page } from "playwright-core";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(90_000);
const ROOT = join(import.meta.dir, "..", "..", "..");
let stage: TestConsole;
let folder: string;

beforeAll(async () => {
  stage = await openConsole();
  await stage.gateway.agent("clerk");
  stage.model.script("small", { chunks: ["twenty ", "days"] });
  // Snippets run outside the repository, as their readers run them, with its packages next to them.
  folder = mkdtempSync(join(tmpdir(), "gatehouse-snippets-"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
});
afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Issues a token for the agent on the page and leaves its secret visible. */
async function issue(page: Page, name: string, agent = "clerk"): Promise<string> {
  await page.getByRole("link", { name: "Issue token" }).click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Acts as", { exact: true }).selectOption(agent);
  await page.getByRole("button", { name: "Issue token", exact: true }).click();
  const secret = (await page.getByRole("region", { name: "Secret", exact: true }).textContent()) ?? "";
  expect(secret).toMatch(/^gth_[0-9A-Za-z]{49}$/);
  return secret;
}

/** The clipboard after pressing a snippet's copy button. */
async function copied(page: Page, name: string): Promise<string> {
  await page.getByRole("button", { name, exact: true }).click();
  const block = page.locator(".code", { has: page.getByRole("region", { name: `${name} example` }) });
  await block.getByRole("button", { name: "Copy" }).click();
  await block.getByRole("button", { name: "Copied" }).waitFor();
  return page.evaluate<string>("navigator.clipboard.readText()");
}

async function openTokens() {
  const opened = await stage.open("/settings");
  await opened.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  return opened;
}

async function output(command: string[]): Promise<string> {
  const child = Bun.spawn(command, { cwd: folder, stdout: "pipe", stderr: "pipe" });
  const [out, error, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${error}`);
  return out;
}

async function runTypeScript(text: string): Promise<string> {
  const path = join(folder, `${Bun.randomUUIDv7()}.ts`);
  await Bun.write(path, text);
  return output([process.execPath, path]);
}

interface McpServers {
  readonly mcpServers: {
    readonly gatehouse: {
      readonly url: string;
      readonly headers: Record<string, string>;
      readonly command: string;
      readonly args: string[];
      readonly env: Record<string, string>;
    };
  };
}

async function toolsOf(transport: Parameters<Client["connect"]>[0]): Promise<string[]> {
  const client = new Client({ name: "test", version: "1.0.0" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  await client.close();
  return tools.map(({ name }) => name);
}

test("each snippet for a new token works as written", async () => {
  const { page, complaints, close } = await openTokens();
  await issue(page, "shop");

  const events = await output(["sh", "-c", await copied(page, "Shell")]);
  expect(events).toContain("event: task.finished");
  expect(events).toContain("twenty days");

  const http = JSON.parse(await copied(page, "MCP client")) as McpServers;
  const { url, headers } = http.mcpServers.gatehouse;
  const overHttp = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  expect(await toolsOf(overHttp)).toContain("vault__search");

  const stdio = JSON.parse(await copied(page, "MCP over stdio")) as McpServers;
  const { command, args, env } = stdio.mcpServers.gatehouse;
  expect(command).toBe("gatehouse");
  const program = [join(ROOT, "src", "main.ts"), ...args];
  const overPipes = new StdioClientTransport({ command: process.execPath, args: program, env, cwd: folder });
  expect(await toolsOf(overPipes)).toContain("vault__search");

  expect(await runTypeScript(await copied(page, "TypeScript"))).toBe("twenty days\nsucceeded\n");
  expect(await runTypeScript(await copied(page, "TypeScript, MCP"))).toContain("vault__search");
  expect(complaints).toEqual([]);
  await close();
});

test("the snippets for clients of models name a tier that the token may use, and the right base URL", async () => {
  await stage.gateway.agent("large", { tier_policy: { tiers: [2] } });
  stage.model.script("large", { chunks: ["Good ", "evening"] });
  const { page, complaints, close } = await openTokens();
  const secret = await issue(page, "library", "large");
  const url = stage.gateway.url;

  expect(await runTypeScript(await copied(page, "OpenAI SDK"))).toBe("Good evening");
  // test/clients/pasted.test.ts runs these.
  for (const name of ["AI SDK", "LangChain", "Codex"]) {
    const text = await copied(page, name);
    for (const part of [`${url}/v1`, "tier:2", secret]) expect(text).toContain(part);
  }

  // A stand-in for the server: it shows which address and key the client uses.
  const asked: unknown[] = [];
  const recorder = Bun.serve({
    port: 0,
    async fetch(request) {
      asked.push([new URL(request.url).pathname, request.headers.get("authorization"), await request.json()]);
      return Response.json({
        type: "message",
        role: "assistant",
        content: [{ type: "text", text: "Hello" }],
      });
    },
  });
  const text = await copied(page, "Anthropic SDK");
  expect(text).toContain(`baseURL: "${url}"`);
  const answer = await runTypeScript(text.replace(url, `http://127.0.0.1:${recorder.port}`));
  await recorder.stop(true);
  expect(answer).toContain("Hello");
  expect(asked).toEqual([["/v1/messages", `Bearer ${secret}`, expect.objectContaining({ model: "tier:2" })]]);

  await Bun.write(
    join(folder, "bin/claude"),
    '#!/bin/sh\necho "$ANTHROPIC_BASE_URL $ANTHROPIC_AUTH_TOKEN" "$@"\n',
  );
  chmodSync(join(folder, "bin/claude"), 0o755);
  const started = await output([
    "sh",
    "-c",
    `PATH='${join(folder, "bin")}':$PATH\n${await copied(page, "Claude Code")}`,
  ]);
  expect(started).toBe(`${url} ${secret} --model tier:2\n`);
  expect(complaints).toEqual([]);
  await close();
});

test("a token without models:call gets no snippets for clients of models", async () => {
  const { page, close } = await openTokens();
  await page.getByRole("link", { name: "Issue token" }).click();
  await page.getByLabel("Name", { exact: true }).fill("no models");
  await page.getByLabel("tasks:read").check();
  await page.getByRole("button", { name: "Issue token", exact: true }).click();
  const uses = page.getByRole("group", { name: "For", exact: true }).getByRole("button");
  await uses.first().waitFor();
  expect(await uses.allTextContents()).toEqual([
    ...["Shell", "MCP client", "MCP over stdio", "TypeScript", "TypeScript, MCP"],
  ]);
  await close();
});

test("a token that may not run tasks gets the snippet that asks who it is", async () => {
  const { page, close } = await openTokens();
  await page.getByRole("link", { name: "Issue token" }).click();
  await page.getByLabel("Name", { exact: true }).fill("auditor");
  await page.getByLabel("ledger:read").check();
  await page.getByRole("button", { name: "Issue token", exact: true }).click();
  const answer = await output(["sh", "-c", await copied(page, "Shell")]);
  expect(JSON.parse(answer)).toMatchObject({ token: { name: "auditor" }, scopes: ["ledger:read"] });
  expect(await runTypeScript(await copied(page, "TypeScript"))).toContain("auditor");
  await close();
});

/** Every place except variables in which a script of the page could find the secret. */
const KEPT = `JSON.stringify({
  local: { ...localStorage },
  session: { ...sessionStorage },
  cookie: document.cookie,
  history: history.state,
  address: location.href,
  title: document.title,
  page: document.documentElement.outerHTML,
  fields: [...document.querySelectorAll("input, textarea, select")].map((field) => field.value),
})`;

test("the page of a secret is left only after its reader confirms having kept it, and then contains none of it", async () => {
  const { page, close } = await openTokens();
  const secret = await issue(page, "kept");
  const question = page.getByRole("heading", { name: "Have you saved the secret?" });
  const shown = page.getByRole("region", { name: "Secret", exact: true });

  await page.getByRole("button", { name: "Done" }).click();
  await question.waitFor();
  await page.getByRole("button", { name: "Show it again" }).click();
  expect(await shown.textContent()).toBe(secret);
  // Pressed more than once, because a browser closes a dialog by itself at the second Escape.
  for (let times = 0; times < 3; times++) await page.keyboard.press("Escape");
  await question.waitFor();
  await page.keyboard.press("Escape");
  expect(await shown.textContent()).toBe(secret);
  expect(await page.evaluate<string>(KEPT)).toContain(secret);

  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "I have saved it" }).click();
  await question.waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "kept" }).waitFor();
  expect(await page.evaluate<string>(KEPT)).not.toContain(secret);
  await page.goBack();
  await page.goForward();
  await page.getByRole("heading", { name: "kept" }).waitFor();
  expect(await page.evaluate<string>(KEPT)).not.toContain(secret);
  await page.reload();
  await page.getByRole("heading", { name: "kept" }).waitFor();
  expect(await page.evaluate<string>(KEPT)).not.toContain(secret);
  const me = await stage.gateway.call("GET", "/v1/session", { token: secret });
  expect(me.body).toMatchObject({ agent: "clerk", token: { name: "kept" } });
  await close();
});
