import type { IssuedToken } from "../../../../http/api.ts";
import { modelSnippetsOf } from "./model-snippets.ts";

/** An example that works as it is. */
export interface Snippet {
  readonly id: string;
  readonly name: string;
  /** Where to paste it. */
  readonly hint: string;
  readonly text: string;
}

export interface SnippetOf {
  readonly token: IssuedToken;
  /** The server's address without a trailing slash. */
  readonly origin: string;
  /** The agent for the example task; null if none is known. */
  readonly agent: string | null;
  /** The name of a model or tier that the token may use; null if none is known. */
  readonly model: string | null;
}

const NO_AGENT = "my-agent";
const PROMPT = "What do you know about refunds?";

/** Examples with the new token's secret, limited to what the token may do. */
export function snippetsOf({ token, origin, agent, model }: SnippetOf): readonly Snippet[] {
  const { secret, scopes } = token;
  const may = (scope: string) => scopes.includes("admin") || scopes.includes(scope);
  const canRun = may("tasks:write");
  const task = { agent: agent ?? NO_AGENT, prompt: PROMPT };
  const fill = agent === null && canRun ? ` Replace ${NO_AGENT} with an agent's name.` : "";
  return [
    {
      id: "shell",
      name: "Shell",
      hint: canRun
        ? `Gives an agent a task and prints its events as they arrive.${fill}`
        : "Prints who you are and what the token may do.",
      text: canRun ? runByCurl(origin, secret, task) : askByCurl(origin, secret),
    },
    {
      id: "mcp",
      name: "MCP client",
      hint: "For the configuration of an MCP client that uses HTTP.",
      text: pretty({
        mcpServers: {
          gatehouse: {
            type: "http",
            url: `${origin}/mcp/sse`,
            headers: { Authorization: `Bearer ${secret}` },
          },
        },
      }),
    },
    {
      id: "stdio",
      name: "MCP over stdio",
      hint: "For an MCP client that starts its servers itself. The program gatehouse must be installed on its machine.",
      text: pretty({
        mcpServers: {
          gatehouse: {
            command: "gatehouse",
            args: ["mcp"],
            env: { GATEHOUSE_URL: origin, GATEHOUSE_TOKEN: secret },
          },
        },
      }),
    },
    {
      id: "typescript",
      name: "TypeScript",
      hint: canRun
        ? `Gives an agent a task and prints its output as it arrives. Runs on Node 20, Bun and Deno without packages.${fill}`
        : "Prints who you are and what the token may do. No packages needed.",
      text: canRun ? runByFetch(origin, secret, task) : askByFetch(origin, secret),
    },
    {
      id: "mcp-client",
      name: "TypeScript, MCP",
      hint: "Lists the tools that the token may call. Needs the package @modelcontextprotocol/sdk.",
      text: listByMcp(origin, secret),
    },
    ...(may("models:call") ? modelSnippetsOf({ secret, origin, model }) : []),
  ];
}

function pretty(value: object): string {
  return JSON.stringify(value, null, 2);
}

function runByCurl(origin: string, secret: string, task: object): string {
  return [
    `curl -N ${quoted(`${origin}/v1/tasks?stream=true`)} \\`,
    `  -H ${quoted(`Authorization: Bearer ${secret}`)} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quoted(JSON.stringify(task))}`,
  ].join("\n");
}

function askByCurl(origin: string, secret: string): string {
  return [
    `curl ${quoted(`${origin}/v1/session`)} \\`,
    `  -H ${quoted(`Authorization: Bearer ${secret}`)}`,
  ].join("\n");
}

function runByFetch(origin: string, secret: string, task: object): string {
  return [
    `import { stdout } from "node:process";`,
    "",
    `const token = "${secret}";`,
    "",
    `const response = await fetch("${origin}/v1/tasks?stream=true", {`,
    `  method: "POST",`,
    `  headers: { authorization: "Bearer " + token, "content-type": "application/json" },`,
    `  body: JSON.stringify(${JSON.stringify(task)}),`,
    "});",
    "if (!response.ok || !response.body) throw new Error(await response.text());",
    "",
    "// Server-sent events are separated by empty lines.",
    `let rest = "";`,
    "for await (const text of response.body.pipeThrough(new TextDecoderStream())) {",
    `  const blocks = (rest + text).split("\\n\\n");`,
    `  rest = blocks.pop() ?? "";`,
    "  for (const block of blocks) {",
    "    const event = /^event: (.*)$/m.exec(block)?.[1];",
    `    const data = JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? "null");`,
    `    if (event === "output.delta") stdout.write(data.text);`,
    "    // The step is retried: discard its output so far.",
    `    if (event === "output.reset") console.log("\\n[again]");`,
    `    if (event === "task.finished") console.log("\\n" + data.status);`,
    "  }",
    "}",
  ].join("\n");
}

function askByFetch(origin: string, secret: string): string {
  return [
    `const token = "${secret}";`,
    "",
    `const response = await fetch("${origin}/v1/session", {`,
    `  headers: { authorization: "Bearer " + token },`,
    "});",
    "if (!response.ok) throw new Error(await response.text());",
    "console.log(await response.json());",
  ].join("\n");
}

function listByMcp(origin: string, secret: string): string {
  return [
    `import { Client } from "@modelcontextprotocol/sdk/client/index.js";`,
    `import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";`,
    "",
    `const client = new Client({ name: "my-client", version: "1.0.0" });`,
    "await client.connect(",
    `  new StreamableHTTPClientTransport(new URL("${origin}/mcp"), {`,
    `    requestInit: { headers: { authorization: "Bearer ${secret}" } },`,
    "  }),",
    ");",
    "const { tools } = await client.listTools();",
    "for (const { name, description } of tools) console.log(name, description);",
    "await client.close();",
  ].join("\n");
}

/** Quotes a word for a POSIX shell (2.2.2, single quotes). */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
