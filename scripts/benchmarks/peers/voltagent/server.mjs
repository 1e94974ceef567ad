/** An agent as in VoltAgent's "Manual setup", with its HTTP server. Conversations and traces stay in memory. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent, VoltAgent } from "@voltagent/core";
import { createPinoLogger } from "@voltagent/logger";
import { honoServer } from "@voltagent/server-hono";

// Otherwise the AI SDK writes a warning about VoltAgent's own use of it to stderr, for each run.
console.warn = () => {};
const { PORT, UPSTREAM_URL } = process.env;
const provider = createOpenAICompatible({
  name: "upstream",
  baseURL: UPSTREAM_URL,
  apiKey: "sk-upstream",
  includeUsage: true,
});
const bench = new Agent({
  name: "bench",
  instructions: "Answers the questions that the benchmarks ask.",
  model: provider("short"),
});
new VoltAgent({
  agents: { bench },
  logger: createPinoLogger({ name: "bench", level: "warn" }),
  server: honoServer({ port: Number(PORT), hostname: "127.0.0.1" }),
});
