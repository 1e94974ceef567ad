import { join } from "node:path";
import { loadFigures } from "../api/load-figures.ts";
import { compared, type Figure } from "../figures.ts";
import { requestText } from "../load/request.ts";
import { alternate } from "../rounds.ts";
import { CHUNKS, chunk, MODELS, PASSED_CHUNKS } from "../servers/script.ts";
import { settings, upstreamRequest } from "../setup.ts";
import { combine, type Pair } from "../statistics.ts";
import type { HelperServer, Round, Workshop } from "../workshop.ts";

const CONNECTIONS = 32;
const READERS = 10;
const PACED_READERS = 60;
type Scripted = "plain" | "passed" | "apart" | "paced";
const PATH = "/v1/chat/completions";

/**
 * Chat completions through Gatehouse, which authenticates, records an intent and an outcome, and counts; compared
 * with a bare proxy and with one that only keeps a hash-chained ledger.
 */
export async function completions(workshop: Workshop): Promise<Figure[]> {
  const upstream = await workshop.upstream();
  const bare = await workshop.proxy({ upstream: upstream.port });
  const ledgered = await workshop.proxy({
    upstream: upstream.port,
    ledger: join(workshop.folder(), "ledger.db"),
  });
  const gatehouse = await workshop.gatehouse({ yaml: settings({ upstream: upstream.port }) });
  const body = (model: Scripted, stream: boolean, provider = "") => ({
    ...upstreamRequest(model),
    model: `${provider}${MODELS[model]}`,
    stream,
    ...(stream ? {} : { stream_options: undefined }),
  });
  const beside = (proxy: HelperServer, model: Scripted, stream: boolean, job: object) => {
    const last = model === "passed" || model === "apart" ? PASSED_CHUNKS : CHUNKS;
    const shared = {
      connections: CONNECTIONS,
      spreadMs: 0,
      expect: { status: 200, texts: [chunk(last - 1)], ...(stream ? { first: chunk(0) } : {}) },
      ...job,
    };
    return alternate<"baseline" | "gatehouse", Round>(
      {
        baseline: () =>
          workshop.load(proxy, {
            ...shared,
            request: requestText("POST", PATH, { body: body(model, stream) }),
          }),
        gatehouse: () =>
          workshop.load(gatehouse, {
            ...shared,
            request: requestText("POST", PATH, {
              token: gatehouse.admin,
              body: body(model, stream, "fake/"),
            }),
          }),
      },
      workshop.rounds,
    );
  };
  const figures = [
    ...loadFigures(
      "models.bare",
      "completions, compared with a bare proxy",
      await beside(bare, "plain", false, {}),
    ),
    ...loadFigures(
      "models.ledgered",
      "completions, compared with a proxy with a ledger",
      await beside(ledgered, "plain", false, {}),
      0.35,
    ),
    ...loadFigures(
      "models.streams",
      `streams of ${PASSED_CHUNKS} chunks, ${READERS} at once`,
      await beside(bare, "passed", true, { connections: READERS }),
      0.5,
    ),
    ...loadFigures(
      "models.apart",
      "  each chunk in a write of its own",
      await beside(bare, "apart", true, { connections: READERS }),
      0.5,
    ),
    ...firstTokens(await beside(bare, "paced", true, { connections: PACED_READERS, spreadMs: 250 })),
  ];
  await gatehouse.stop();
  await bare.stop();
  await ledgered.stop();
  await upstream.stop();
  return figures;
}

function firstTokens(rounds: readonly Pair<Round>[]): Figure[] {
  const pairs = (of: (round: Round) => number | null): Pair<number | null>[] =>
    rounds.map(({ baseline, gatehouse }) => ({ baseline: of(baseline), gatehouse: of(gatehouse) }));
  const added = (of: (round: Round) => number | null) =>
    pairs(of).map((pair) => ({
      baseline: 0,
      gatehouse: combine(pair, (before, through) => through - before),
    }));
  return [
    compared(
      { id: "models.paced.first50", label: `${PACED_READERS} paced streams: first token p50`, unit: "ms" },
      pairs((round) => round.first50),
    ),
    compared(
      { id: "models.paced.added50", label: "  added, p50", unit: "ms" },
      added((round) => round.first50),
      { of: "gatehouse", relation: "<", value: 2 },
    ),
    compared(
      { id: "models.paced.added99", label: "  added, p99", unit: "ms" },
      added((round) => round.first99),
      { of: "gatehouse", relation: "<", value: 8 },
    ),
  ];
}
