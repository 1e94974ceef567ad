import { join } from "node:path";
import { loadFigures } from "../api/load-figures.ts";
import type { Figure } from "../figures.ts";
import { requestText } from "../load/request.ts";
import { installed } from "../processes/install.ts";
import { Skipped } from "../report.ts";
import { alternate } from "../rounds.ts";
import { CHUNKS, chunk, MODELS } from "../servers/script.ts";
import { settings, upstreamRequest } from "../setup.ts";
import type { Round, Workshop } from "../workshop.ts";

const CONNECTIONS = 32;
const PATH = "/v1/chat/completions";
const FOLDER = join(import.meta.dir, "peers");
const PACKAGE = "@portkey-ai/gateway";

/**
 * The same completions through Portkey's gateway on Bun, which forwards them and records nothing.
 */
export async function besidePortkey(workshop: Workshop): Promise<Figure[]> {
  if (!workshop.peers) throw new Skipped("give --peers to install it and measure it");
  const missing = await installed(FOLDER, PACKAGE);
  if (missing !== null) throw new Skipped(missing);
  const upstream = await workshop.upstream();
  const portkey = await workshop.program(join(FOLDER, "node_modules", PACKAGE, "build/start-server.js"));
  const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  const body = { ...upstreamRequest("plain"), stream: false, stream_options: undefined };
  const shared = {
    connections: CONNECTIONS,
    spreadMs: 0,
    expect: { status: 200, texts: [chunk(CHUNKS - 1)] },
  };
  const headers = [
    "x-portkey-provider: openai",
    `x-portkey-custom-host: http://127.0.0.1:${upstream.port}/v1`,
  ];
  const rounds = await alternate<"baseline" | "gatehouse", Round>(
    {
      baseline: () =>
        workshop.load(portkey, {
          ...shared,
          request: requestText("POST", PATH, {
            token: "sk-upstream",
            headers,
            body: { ...body, model: MODELS.plain },
          }),
        }),
      gatehouse: () =>
        workshop.load(gatehouse, {
          ...shared,
          request: requestText("POST", PATH, {
            token: gatehouse.admin,
            body: { ...body, model: `fake/${MODELS.plain}` },
          }),
        }),
    },
    workshop.rounds,
  );
  await gatehouse.stop();
  await portkey.stop();
  await upstream.stop();
  return loadFigures("models.portkey", "completions, beside Portkey's gateway", rounds, 1.5);
}
