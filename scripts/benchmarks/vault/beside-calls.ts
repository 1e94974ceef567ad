import { alone, compared, type Figure } from "../figures.ts";
import { requestText } from "../load/request.ts";
import { alternate } from "../rounds.ts";
import { AGENT, createAgent, settings } from "../setup.ts";
import { combine, type Pair } from "../statistics.ts";
import type { Round, Workshop } from "../workshop.ts";
import { ingest, VaultClient } from "./client.ts";
import { Passages } from "./passages.ts";

const CONNECTIONS = 16;
/** 16 connections then send 800 requests a second, a fraction of what the server can answer. */
const PACE_MS = 20;

interface CallsRound extends Round {
  /** Null while no documents are added. */
  readonly documentsPerSecond: number | null;
}

/** Reading an agent while documents are added without a pause, compared with the same without documents. */
export async function besideCalls(workshop: Workshop): Promise<Figure[]> {
  const gatehouse = await workshop.gatehouse({ yaml: settings() });
  const agent = await createAgent(gatehouse);
  const client = new VaultClient(gatehouse.port, gatehouse.admin);
  const passages = Passages.of(workshop.collections);
  const job = {
    request: requestText("GET", `/v1/agents/${AGENT}`, { token: gatehouse.admin }),
    connections: CONNECTIONS,
    paceMs: PACE_MS,
    spreadMs: PACE_MS,
    expect: { status: 200, bytes: Buffer.byteLength(JSON.stringify(agent)), texts: [] },
  };

  async function quiet(): Promise<CallsRound> {
    return { ...(await workshop.load(gatehouse, job)), documentsPerSecond: null };
  }
  let written = 0;
  async function busy(): Promise<CallsRound> {
    let isOver = false;
    const first = written;
    const writing = ingest(
      client,
      Number.POSITIVE_INFINITY,
      (index) => passages.passage(first + index),
      () => isOver,
    );
    // The failure is thrown below. Until then it must not end the process.
    writing.catch(() => {});
    const round = await workshop.load(gatehouse, job);
    isOver = true;
    const { ids, seconds } = await writing;
    written += ids.length;
    return { ...round, documentsPerSecond: ids.length / seconds };
  }
  const rounds = await alternate({ baseline: quiet, gatehouse: busy }, workshop.rounds);

  await gatehouse.stop();

  const label = "GET /v1/agents/:name while documents are added";
  const pairs = (of: (round: Round) => number | null): Pair<number | null>[] =>
    rounds.map(({ baseline, gatehouse: during }) => ({ baseline: of(baseline), gatehouse: of(during) }));
  const p99 = pairs((round) => round.p99);
  const added = p99.map((pair) => combine(pair, (quiet, during) => during - quiet));
  return [
    compared(
      { id: "vault.beside.rate", label, unit: "1/s" },
      pairs((round) => round.perSecond),
    ),
    compared(
      { id: "vault.beside.p50", label: "  latency p50", unit: "ms" },
      pairs((round) => round.p50),
    ),
    compared({ id: "vault.beside.p99", label: "  latency p99", unit: "ms" }, p99),
    alone({ id: "vault.beside.added99", label: "  added to the latency p99", unit: "ms" }, added),
    alone(
      { id: "vault.beside.ingest", label: "  documents added", unit: "1/s" },
      rounds.map((round) => round.gatehouse.documentsPerSecond),
    ),
  ];
}
