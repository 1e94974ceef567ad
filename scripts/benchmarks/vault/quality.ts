import type { Figure } from "../figures.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { Skipped } from "../report.ts";
import { settings } from "../setup.ts";
import { Samples } from "../statistics.ts";
import type { Workshop } from "../workshop.ts";
import { ingest, type Mode, VaultClient } from "./client.ts";
import { type Collection, collectionsIn, readCollection } from "./collections.ts";
import { PlainFts5 } from "./fts5.ts";
import { mean, ndcg, recall } from "./metrics.ts";
import { type CollectionResult, qualityFigures, type Scores } from "./quality-figures.ts";
import { Random } from "./random.ts";
import { mistype } from "./typos.ts";

const CUT = 10;
/** Passages requested, so that they include ten documents, most of which have several passages. */
const PASSAGES = 30;
const SCOPE = "collection";
/** How many times typing errors are injected, each time different ones. */
const TYPED = 3;
/** Simultaneous searches when times are not measured. */
const SEARCHERS = 4;
const WARM_UP = 50;

/** Returns ids of documents, best first. */
type Ranker = (query: string) => string[] | Promise<string[]>;

/** How well each mode finds what people judged to be relevant, compared with plain FTS5 on the same documents. */
export async function quality(workshop: Workshop): Promise<Figure[]> {
  const folders = workshop.collections === null ? [] : collectionsIn(workshop.collections);
  if (folders.length === 0) {
    throw new Skipped("no collections: name a folder with --collections or GATEHOUSE_COLLECTIONS");
  }
  const results: CollectionResult[] = [];
  for (const folder of folders) {
    const gatehouse = await workshop.gatehouse({ yaml: settings() });
    results.push(await measure(readCollection(folder), gatehouse));
    await gatehouse.stop();
  }
  return qualityFigures(results);
}

async function measure(collection: Collection, gatehouse: Gatehouse): Promise<CollectionResult> {
  const { name, documents } = collection;
  const client = new VaultClient(gatehouse.port, gatehouse.admin);
  console.error(`  ${name}: ${documents.length} documents are added`);
  const { ids, seconds } = await ingest(client, documents.length, (index) => {
    const { title, text } = documents[index] ?? { title: "", text: "" };
    return { title, text, scope: SCOPE };
  });
  const original = new Map(ids.map((id, index) => [id, documents[index]?.id ?? ""]));
  const fts5 = new PlainFts5(documents);
  const baseline: Ranker = (query) => fts5.search(query, CUT);
  const ranker =
    (mode: Mode): Ranker =>
    async (query) => {
      const found = await client.search({ query, top_k: PASSAGES, mode });
      // A document's first passage determines its place.
      return [...new Set(found.map(({ document_id }) => original.get(document_id) ?? "unknown"))];
    };

  const clean = collection.queries.map(({ text }) => text);
  const times = {
    baseline: await timesOf(baseline, clean),
    gatehouse: await timesOf(ranker("hybrid"), clean),
  };
  const scoresOfEach = async (asked: readonly (readonly string[])[]) => {
    const of = async (how: Ranker) => {
      const takes: Scores[] = [];
      for (const texts of asked) takes.push(await scoresOf(how, collection, texts));
      return takes;
    };
    return {
      hybrid: await of(ranker("hybrid")),
      keyword: await of(ranker("keyword")),
      vector: await of(ranker("vector")),
      baseline: await of(baseline),
    };
  };
  const scores = {
    clean: await scoresOfEach([clean]),
    typed: await scoresOfEach(Array.from({ length: TYPED }, (_, take) => typed(collection, take))),
  };
  fts5.close();
  return { name, documentsPerSecond: documents.length / seconds, times, scores };
}

/** The collection's queries with typing errors, the same in every run. */
function typed({ name, queries }: Collection, take: number): string[] {
  return queries.map(({ id, text }) => mistype(text, new Random(`${name} ${id} ${take}`)));
}

/**
 * Means over all of the collection's queries.
 * @param texts the text to search for, in place of each query's own
 */
async function scoresOf(rank: Ranker, { queries }: Collection, texts: readonly string[]): Promise<Scores> {
  const rankings: string[][] = [];
  let next = 0;
  async function search(): Promise<void> {
    for (let index = next++; index < texts.length; index = next++)
      rankings[index] = await rank(texts[index] ?? "");
  }
  await Promise.all(Array.from({ length: SEARCHERS }, search));
  const over = (metric: typeof ndcg) =>
    mean(queries.map(({ grades }, index) => metric(rankings[index] ?? [], grades, CUT)));
  return { ndcg: over(ndcg), recall: over(recall) };
}

/** Times of one search at a time, as a client sees them. */
async function timesOf(
  rank: Ranker,
  texts: readonly string[],
): Promise<{ p50: number | null; p99: number | null }> {
  const samples = new Samples(texts.length);
  for (const text of texts.slice(0, WARM_UP)) await rank(text);
  for (const text of texts) {
    const begun = performance.now();
    await rank(text);
    samples.add(performance.now() - begun);
  }
  return { p50: samples.percentile(50), p99: samples.percentile(99) };
}
