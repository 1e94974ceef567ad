import { requestText } from "../../load/request.ts";
import { freePort } from "../../processes/program.ts";
import { chunk, SHORT_CHUNKS } from "../../servers/script.ts";
import { nodeCommand, type Product, serverSettings } from "../product.ts";

const FOLDER = import.meta.dir;

/** Mastra's server, which streams an agent's answer. An agent without memory leaves nothing in its store. */
export const mastra: Product = {
  id: "mastra",
  name: "Mastra",
  folder: FOLDER,
  package: "@mastra/core",
  runtime: "node",
  everyMs: 4_000,
  start(workshop, upstream) {
    const port = freePort();
    const env = { ...serverSettings(port, upstream), MASTRA_TELEMETRY_DISABLED: "1" };
    return workshop.program({ command: nodeCommand(FOLDER), port, env, cwd: workshop.folder() });
  },
  run: (_, prompt) => ({
    request: requestText("POST", "/api/agents/bench/stream", { body: { messages: prompt } }),
    expect: { status: 200, first: chunk(0), texts: [chunk(SHORT_CHUNKS - 1), "data: [DONE]"] },
  }),
};
