import { join } from "node:path";
import { compared, type Figure, ofBaseline } from "../figures.ts";
import { installed } from "../processes/install.ts";
import type { Worker } from "../processes/worker.ts";
import { Skipped } from "../report.ts";
import { alternate } from "../rounds.ts";
import { settings } from "../setup.ts";
import type { Pair } from "../statistics.ts";
import type { Workshop } from "../workshop.ts";
import { done, finished, type OpenJob, type PeerQuery, recalled, searched } from "./peers/jobs.ts";
import {
  checkAnswers,
  type FilledVault,
  PLACES,
  type Reach,
  type Searcher,
  searchLoad,
  TOP_K,
} from "./searchers.ts";

const PEERS = join(import.meta.dir, "peers");
const BATCH = 2_000;
/** Queries whose exact answer is computed. */
const EXACT = 30;
const REACHES = ["all", "scope"] as const;

interface PeerProduct {
  readonly name: OpenJob["peer"];
  readonly label: string;
  readonly package: string;
}

export function lancedb(workshop: Workshop): Promise<Figure[]> {
  return beside(workshop, { name: "lancedb", label: "LanceDB", package: "@lancedb/lancedb" });
}

export function hnswlib(workshop: Workshop): Promise<Figure[]> {
  return beside(workshop, { name: "hnswlib", label: "hnswlib", package: "hnswlib-node" });
}

/**
 * The same vectors in a library within a process: no HTTP, ledger or boundaries. It is compared with Gatehouse's
 * `vector` mode over REST, with the same queries, one search at a time.
 */
async function beside(workshop: Workshop, product: PeerProduct): Promise<Figure[]> {
  if (!workshop.peers) throw new Skipped("give --peers to install it and measure it");
  const vault = workshop.filledVault;
  if (vault === null) throw new Skipped("the vault was not filled");
  const missing = await installed(PEERS, product.package);
  if (missing !== null) throw new Skipped(missing);

  const worker = workshop.worker("vault/peers/main.ts");
  const seconds = await fill(workshop, worker, product);
  const gatehouse = await workshop.gatehouse({ yaml: settings(), dataDir: vault.dataDir });
  const figures: Figure[] = [
    ofBaseline(
      { id: `vault.peers.${product.name}.ingest`, label: `${product.label}: vectors added`, unit: "1/s" },
      [workshop.passages / seconds],
    ),
  ];
  for (const reach of REACHES) {
    const searcher = firstOf(vault, reach);
    await checkAnswers(gatehouse, [searcher], "vector");
    const queries = queriesOf(searcher);
    const search = { kind: "search", queries, k: TOP_K, seconds: workshop.seconds };
    const rounds = await alternate(
      {
        baseline: () => worker.ask(search, searched),
        gatehouse: () => workshop.load(gatehouse, searchLoad([searcher], "vector")),
      },
      workshop.rounds,
    );
    const exact = queries.slice(0, EXACT);
    const { recall } = await worker.ask({ kind: "recall", queries: exact, k: TOP_K }, recalled);
    figures.push(...figuresOf(product, reach, rounds, recall));
  }
  await gatehouse.stop();
  await worker.end();
  return figures;
}

/** @returns seconds that the peer took */
async function fill(workshop: Workshop, worker: Worker, { name }: PeerProduct): Promise<number> {
  const { collections, passages } = workshop;
  const folder = workshop.folder();
  await worker.ask({ kind: "open", peer: name, folder, collections, passages }, done);
  for (let from = 0; from < passages; from += BATCH) {
    await worker.ask({ kind: "add", from, to: Math.min(from + BATCH, passages) }, done);
  }
  return (await worker.ask({ kind: "finish" }, finished)).seconds;
}

function firstOf({ searchers }: FilledVault, reach: Reach): Searcher {
  const searcher = searchers[reach][0];
  if (searcher === undefined) throw new Error("there is no searcher");
  return searcher;
}

function queriesOf({ queries, scope }: Searcher): PeerQuery[] {
  const number = scope === "/" ? null : Number(scope.slice(scope.lastIndexOf("-") + 1));
  return queries.map((text) => ({ text, scope: number }));
}

interface Times {
  readonly p50: number | null;
  readonly p99: number | null;
}

function figuresOf(
  { name, label }: PeerProduct,
  reach: Reach,
  rounds: readonly Pair<Times>[],
  recall: number,
): Figure[] {
  const id = `vault.peers.${name}.${reach}`;
  const pairs = (of: keyof Times) =>
    rounds.map(({ baseline, gatehouse }) => ({ baseline: baseline[of], gatehouse: gatehouse[of] }));
  return [
    compared({ id: `${id}.p50`, label: `${label}: ${PLACES[reach]}, p50`, unit: "ms" }, pairs("p50")),
    compared({ id: `${id}.p99`, label: "  p99", unit: "ms" }, pairs("p99")),
    ofBaseline({ id: `${id}.recall`, label: "  of the exact ten", unit: "score" }, [recall]),
  ];
}
