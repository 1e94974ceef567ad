import { join } from "node:path";
import { requestText } from "../../load/request.ts";
import { freePort } from "../../processes/program.ts";
import { chunk, SHORT_CHUNKS } from "../../servers/script.ts";
import { upstreamRequest } from "../../setup.ts";
import type { Product } from "../product.ts";

const FOLDER = import.meta.dir;
const PACKAGE = "@portkey-ai/gateway";

/** Portkey's gateway on Bun, as its README starts it. It passes completions on and records nothing. */
export const portkey: Product = {
  id: "portkey",
  name: "Portkey's gateway",
  folder: FOLDER,
  package: PACKAGE,
  runtime: "bun",
  everyMs: 2_000,
  start(workshop) {
    const port = freePort();
    const script = join(FOLDER, "node_modules", PACKAGE, "build", "start-server.js");
    return workshop.program({
      command: [process.execPath, "--no-env-file", script, `--port=${port}`, "--headless"],
      port,
    });
  },
  run: (upstream) => ({
    request: requestText("POST", "/v1/chat/completions", {
      token: "sk-upstream",
      headers: portkeyHeaders(upstream),
      body: upstreamRequest("short"),
    }),
    expect: { status: 200, first: chunk(0), texts: [chunk(SHORT_CHUNKS - 1), "data: [DONE]"] },
  }),
};

/** The same gateway, which passes on completions that are not streamed: its streams take 25 ms longer. */
export const portkeyCompletions: Product = {
  ...portkey,
  leastRate: 1,
  run: (upstream) => ({
    request: requestText("POST", "/v1/chat/completions", {
      token: "sk-upstream",
      headers: portkeyHeaders(upstream),
      body: { ...upstreamRequest("short"), stream: false, stream_options: undefined },
    }),
    expect: { status: 200, texts: [chunk(SHORT_CHUNKS - 1)] },
  }),
};

/** Names the upstream in a request. */
export function portkeyHeaders(upstream: number): string[] {
  return ["x-portkey-provider: openai", `x-portkey-custom-host: http://127.0.0.1:${upstream}/v1`];
}
