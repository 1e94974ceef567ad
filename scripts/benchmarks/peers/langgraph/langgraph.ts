import { requestText } from "../../load/request.ts";
import { freePort } from "../../processes/program.ts";
import { chunk, SHORT_CHUNKS } from "../../servers/script.ts";
import { nodeCommand, type Product, serverSettings } from "../product.ts";

const FOLDER = import.meta.dir;

/** LangGraph's development server, which keeps threads, runs and checkpoints in memory. */
export const langgraph: Product = {
  id: "langgraph",
  name: "LangGraph's server",
  folder: FOLDER,
  package: "@langchain/langgraph-api",
  runtime: "node",
  everyMs: 4_000,
  start(workshop, upstream) {
    const port = freePort();
    const env = { ...serverSettings(port, upstream), LANGSMITH_TRACING: "false" };
    return workshop.program({ command: nodeCommand(FOLDER), port, env, cwd: workshop.folder() });
  },
  run: (_, prompt) => ({
    request: requestText("POST", "/runs/stream", {
      body: {
        assistant_id: "bench",
        input: { messages: [{ role: "user", content: prompt }] },
        stream_mode: ["messages-tuple"],
      },
    }),
    expect: { status: 200, first: chunk(0), texts: [chunk(SHORT_CHUNKS - 1), '"usage_metadata"'] },
  }),
};
