import { requestText } from "../../load/request.ts";
import { freePort } from "../../processes/program.ts";
import { chunk, SHORT_CHUNKS } from "../../servers/script.ts";
import { nodeCommand, type Product, serverSettings } from "../product.ts";

const FOLDER = import.meta.dir;

/** VoltAgent's server, which streams an agent's answer. It keeps conversations and traces in memory. */
export const voltagent: Product = {
  id: "voltagent",
  name: "VoltAgent",
  folder: FOLDER,
  package: "@voltagent/core",
  runtime: "node",
  leastRate: 10,
  everyMs: 2_000,
  start(workshop, upstream) {
    const port = freePort();
    return workshop.program({ command: nodeCommand(FOLDER), port, env: serverSettings(port, upstream) });
  },
  run: (_, prompt) => ({
    request: requestText("POST", "/agents/bench/stream", { body: { input: prompt } }),
    expect: { status: 200, first: chunk(0), texts: [chunk(SHORT_CHUNKS - 1), '"type":"finish"'] },
  }),
};
