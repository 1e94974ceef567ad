import { loadFigures } from "../api/load-figures.ts";
import type { Figure } from "../figures.ts";
import { requestText } from "../load/request.ts";
import { portkey, portkeyHeaders } from "../peers/portkey/portkey.ts";
import { installed } from "../processes/install.ts";
import { Skipped } from "../report.ts";
import { alternate } from "../rounds.ts";
import { CHUNKS, chunk, MODELS } from "../servers/script.ts";
import { settings, upstreamRequest } from "../setup.ts";
import type { Round, Workshop } from "../workshop.ts";

const CONNECTIONS = 32;
const PATH = "/v1/chat/completions";

/**
 * The same completions through Portkey's gateway on Bun, which forwards them and records nothing.
 */
export async function besidePortkey(workshop: Workshop): Promise<Figure[]> {
  if (!workshop.peers) throw new Skipped("give --peers to install it and measure it");
  const missing = await installed(portkey.folder, portkey.package);
  if (missing !== null) throw new Skipped(missing);
  const upstream = await workshop.upstream();
  const peer = await portkey.start(workshop, upstream.port);
  const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  const body = { ...upstreamRequest("plain"), stream: false, stream_options: undefined };
  const shared = {
    connections: CONNECTIONS,
    spreadMs: 0,
    expect: { status: 200, texts: [chunk(CHUNKS - 1)] },
  };
  const rounds = await alternate<"baseline" | "gatehouse", Round>(
    {
      baseline: () =>
        workshop.load(peer, {
          ...shared,
          request: requestText("POST", PATH, {
            token: "sk-upstream",
            headers: portkeyHeaders(upstream.port),
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
  await peer.stop();
  await upstream.stop();
  return loadFigures("models.portkey", "completions, beside Portkey's gateway", rounds, 1.5);
}
