/**
 * An agent behind Mastra's server for Hono, with its LibSQL store in a file, because Mastra calls the store in memory
 * unsafe for production.
 */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { serve } from "@hono/node-server";
import { Agent } from "@mastra/core/agent";
import { Mastra } from "@mastra/core/mastra";
import { MastraServer } from "@mastra/hono";
import { LibSQLStore } from "@mastra/libsql";
import { Hono } from "hono";

const { PORT, UPSTREAM_URL } = process.env;
const provider = createOpenAICompatible({
  name: "upstream",
  baseURL: UPSTREAM_URL,
  apiKey: "sk-upstream",
  includeUsage: true,
});
const bench = new Agent({
  id: "bench",
  name: "bench",
  instructions: "Answers the questions that the benchmarks ask.",
  model: provider("short"),
});
const storage = new LibSQLStore({ id: "bench", url: "file:./mastra.db" });
const app = new Hono();
await new MastraServer({ app, mastra: new Mastra({ agents: { bench }, storage }) }).init();
serve({ fetch: app.fetch, port: Number(PORT), hostname: "127.0.0.1" });
