import type { Agent, Tier } from "../../../../http/api.ts";
import { routeOf } from "../../agents/policy.ts";
import type { Snippet } from "./snippets.ts";

export interface ModelSnippetOf {
  readonly secret: string;
  /** The server's address without a trailing slash. */
  readonly origin: string;
  /** The name of a model or tier that the token may use; null if none is known. */
  readonly model: string | null;
}

const SOME_MODEL = "tier:1";
const PROMPT = "Good morning";

/**
 * The lowest tier with a model that an agent may use or, without an agent, the lowest tier; null if there is none.
 */
export function usableTier(tiers: readonly Tier[], agent: Agent | undefined): string | null {
  const policy = agent && { tiers: agent.tier_policy.tiers, ...agent.tier_policy.models };
  const usable = tiers.find((tier) => !policy || routeOf(policy, tier).length > 0);
  return usable ? `tier:${usable.tier}` : null;
}

/** Examples for clients that call models. OpenAI's clients add paths to `{origin}/v1`, most of Anthropic's to `{origin}`. */
export function modelSnippetsOf({ secret, origin, model: known }: ModelSnippetOf): readonly Snippet[] {
  const model = known ?? SOME_MODEL;
  const fill = known === null ? ` Replace ${SOME_MODEL} with a model that the token may use.` : "";
  return [
    {
      id: "openai",
      name: "OpenAI SDK",
      hint: `Prints a model's answer as it arrives. Needs the package openai.${fill}`,
      text: byOpenAi(`${origin}/v1`, secret, model),
    },
    {
      id: "ai-sdk",
      name: "AI SDK",
      hint: `Prints a model's answer. Needs the packages ai and @ai-sdk/openai.${fill}`,
      text: byAiSdk(`${origin}/v1`, secret, model),
    },
    {
      id: "langchain",
      name: "LangChain",
      hint: `Prints a model's answer. Needs the package @langchain/openai.${fill}`,
      text: byLangChain(`${origin}/v1`, secret, model),
    },
    {
      id: "anthropic",
      name: "Anthropic SDK",
      hint: `Prints a model's answer. Needs the package @anthropic-ai/sdk.${fill}`,
      text: byAnthropic(origin, secret, model),
    },
    {
      id: "claude-code",
      name: "Claude Code",
      hint: `Starts Claude Code with a model, without changing its configuration.${fill}`,
      text: byClaudeCode(origin, secret, model),
    },
    {
      id: "codex",
      name: "Codex",
      hint: `Starts Codex with a model, without changing its configuration. Its web search is off: only OpenAI's models have it.${fill}`,
      text: byCodex(`${origin}/v1`, secret, model),
    },
  ];
}

function byOpenAi(url: string, secret: string, model: string): string {
  return [
    `import { stdout } from "node:process";`,
    `import OpenAI from "openai";`,
    "",
    "const client = new OpenAI({",
    `  baseURL: "${url}",`,
    `  apiKey: "${secret}",`,
    "});",
    "const stream = await client.chat.completions.create({",
    `  model: ${JSON.stringify(model)},`,
    `  messages: [{ role: "user", content: "${PROMPT}" }],`,
    "  stream: true,",
    "});",
    `for await (const chunk of stream) stdout.write(chunk.choices[0]?.delta.content ?? "");`,
  ].join("\n");
}

/** With `.chat`: the default is the Responses API. */
function byAiSdk(url: string, secret: string, model: string): string {
  return [
    `import { createOpenAI } from "@ai-sdk/openai";`,
    `import { generateText } from "ai";`,
    "",
    "const gatehouse = createOpenAI({",
    `  baseURL: "${url}",`,
    `  apiKey: "${secret}",`,
    "});",
    "const { text } = await generateText({",
    `  model: gatehouse.chat(${JSON.stringify(model)}),`,
    `  prompt: "${PROMPT}",`,
    "});",
    "console.log(text);",
  ].join("\n");
}

function byLangChain(url: string, secret: string, model: string): string {
  return [
    `import { ChatOpenAI } from "@langchain/openai";`,
    "",
    "const model = new ChatOpenAI({",
    `  model: ${JSON.stringify(model)},`,
    `  apiKey: "${secret}",`,
    `  configuration: { baseURL: "${url}" },`,
    "});",
    `console.log((await model.invoke("${PROMPT}")).content);`,
  ].join("\n");
}

function byAnthropic(url: string, secret: string, model: string): string {
  return [
    `import Anthropic from "@anthropic-ai/sdk";`,
    "",
    "const client = new Anthropic({",
    `  baseURL: "${url}",`,
    `  apiKey: "${secret}",`,
    "});",
    "const message = await client.messages.create({",
    `  model: ${JSON.stringify(model)},`,
    "  max_tokens: 1000,",
    `  messages: [{ role: "user", content: "${PROMPT}" }],`,
    "});",
    "console.log(message.content);",
  ].join("\n");
}

function byClaudeCode(url: string, secret: string, model: string): string {
  return [
    `ANTHROPIC_BASE_URL='${url}' \\`,
    `  ANTHROPIC_AUTH_TOKEN='${secret}' \\`,
    `  claude --model '${model}'`,
  ].join("\n");
}

/** The provider is a table of Codex's configuration, in TOML. Codex reads the key from the variable that it names. */
function byCodex(url: string, secret: string, model: string): string {
  const provider = `{name="Gatehouse",base_url="${url}",env_key="GATEHOUSE_TOKEN",wire_api="responses"}`;
  return [
    `GATEHOUSE_TOKEN='${secret}' \\`,
    `  codex -c model_provider=gatehouse \\`,
    `  -c web_search=disabled \\`,
    `  -c 'model_providers.gatehouse=${provider}' \\`,
    `  --model '${model}'`,
  ].join("\n");
}
