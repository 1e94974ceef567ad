/** Another vector store in a separate process, without a server in front, for comparison with Gatehouse's search. */
import { answerLines } from "../../processes/lines.ts";
import { Samples } from "../../statistics.ts";
import { mean } from "../metrics.ts";
import { Passages, SCOPES } from "../passages.ts";
import { openHnswlib } from "./hnswlib.ts";
import { type OpenJob, type PeerJob, type PeerQuery, peerJob } from "./jobs.ts";
import { openLanceDb } from "./lancedb.ts";
import type { Peer } from "./peer.ts";
import { DIMENSIONS, nearest, passageVector, questionVector } from "./vectors.ts";

const SEARCHES_PER_SECOND = 100_000;

/** A peer and the vectors in it. */
class Contender {
  readonly #peer: Peer;
  readonly #passages: Passages;
  readonly #vectors: Float32Array;
  #seconds = 0;

  private constructor(peer: Peer, passages: Passages, count: number) {
    this.#peer = peer;
    this.#passages = passages;
    this.#vectors = new Float32Array(count * DIMENSIONS);
  }

  static async open({ peer, folder, collections, passages }: OpenJob): Promise<Contender> {
    const opened = await (peer === "lancedb" ? openLanceDb(folder) : openHnswlib(passages));
    return new Contender(opened, Passages.of(collections), passages);
  }

  async add(from: number, to: number): Promise<void> {
    for (let row = from; row < to; row++) {
      this.#vectors.set(passageVector(this.#passages.passage(row)), row * DIMENSIONS);
    }
    await this.#timed(() => this.#peer.add(from, this.#vectors.subarray(from * DIMENSIONS, to * DIMENSIONS)));
  }

  async finish(): Promise<{ seconds: number }> {
    await this.#timed(() => this.#peer.finish());
    return { seconds: this.#seconds };
  }

  /** @throws Error if an answer is too short, or contains something from outside the scope */
  async search(
    queries: readonly PeerQuery[],
    k: number,
    seconds: number,
  ): Promise<{ perSecond: number; p50: number | null; p99: number | null }> {
    const vectors = queries.map(({ text }) => questionVector(text));
    const samples = new Samples(Math.ceil(seconds * SEARCHES_PER_SECOND) + 1);
    const begun = performance.now();
    const deadline = begun + seconds * 1_000;
    let count = 0;
    for (let now = begun; now < deadline; ) {
      const { scope } = queries[count % queries.length] ?? { scope: null };
      const vector = vectors[count % queries.length] ?? new Float32Array(DIMENSIONS);
      const found = await this.#peer.search(vector, k, scope);
      const after = performance.now();
      samples.add(after - now);
      count++;
      if (found.length !== k) throw new Error(`${found.length} results instead of ${k}`);
      if (scope !== null && found.some((row) => row % SCOPES !== scope))
        throw new Error("a result of another scope");
      now = performance.now();
    }
    const took = (performance.now() - begun) / 1_000;
    return { perSecond: count / took, p50: samples.percentile(50), p99: samples.percentile(99) };
  }

  async recall(queries: readonly PeerQuery[], k: number): Promise<{ recall: number }> {
    const parts: number[] = [];
    for (const { text, scope } of queries) {
      const vector = questionVector(text);
      const truth = nearest(this.#vectors, vector, k, (row) => scope === null || row % SCOPES === scope);
      const found = new Set(await this.#peer.search(vector, k, scope));
      parts.push(truth.filter((row) => found.has(row)).length / k);
    }
    return { recall: mean(parts) };
  }

  async #timed(work: () => Promise<void>): Promise<void> {
    const begun = performance.now();
    await work();
    this.#seconds += (performance.now() - begun) / 1_000;
  }
}

let contender: Contender | null = null;

async function perform(asked: PeerJob): Promise<object> {
  if (asked.kind === "open") {
    contender = await Contender.open(asked);
    return {};
  }
  if (contender === null) throw new Error("no peer was opened");
  switch (asked.kind) {
    case "add":
      await contender.add(asked.from, asked.to);
      return {};
    case "finish":
      return contender.finish();
    case "search":
      return contender.search(asked.queries, asked.k, asked.seconds);
    case "recall":
      return contender.recall(asked.queries, asked.k);
  }
}

await answerLines((message) => perform(peerJob.parse(message)));
