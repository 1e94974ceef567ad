import type { EmbeddingModelV4 } from "@ai-sdk/provider";
import { type Clock, pause } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import { type RandomSource, systemRandom } from "../../base/ids.ts";
import type { Config } from "../../config/config.ts";
import type { FairSlots } from "../../limits/fair-slots.ts";
import { callFor } from "../calling-workspace.ts";
import { createEmbeddingModel } from "../providers/index.ts";
import { type BatchText, nextBatch, pieceOf, shorter } from "./batch.ts";
import { QueryCache } from "./cache.ts";
import { type EmbeddingFault, embeddingFailed, faultOf, type RequestFault } from "./failure.ts";
import { createLanes, type EmbeddingLanes } from "./lanes.ts";
import { type Prefixes, prefixesOf } from "./prefix.ts";
import { askOnce, backoff } from "./request.ts";
import { embeddingTokens } from "./tokens.ts";
import { inOrder, unitVectors } from "./vectors.ts";

export { EmbeddingFailed } from "./failure.ts";
export { prefixesOf } from "./prefix.ts";

export type EmbeddingKind = "document" | "query";

/** The workspace that vectors are made for. */
export interface EmbedOptions {
  readonly workspaceId: number;
  readonly signal?: AbortSignal | undefined;
}

/** A successful request for vectors. */
export interface EmbeddingUse {
  readonly workspaceId: number;
  readonly model: string;
  readonly tokens: number;
  readonly durationMs: number;
}

/** The parts that all embedders of a process share. */
export interface EmbeddingParts {
  readonly lanes: EmbeddingLanes;
  /** Called after each successful request. */
  used(use: EmbeddingUse): void;
}

/** A model that converts texts to vectors, over the network. */
export interface Embedder {
  /** `<provider>/<model>` */
  readonly model: string;
  /** Identifies the vector space, but not its dimension. Only vectors with the same value may be compared. */
  readonly space: string;
  /**
   * Returns one vector of unit length for each text, in order, all with the dimension of the first answer ever
   * received. `kind` distinguishes documents from queries, since some models need a prefix. Vectors of queries are
   * cached, up to 1,000.
   *
   * Texts are sent in batches, for which workspaces take turns; at most two batches of documents are in flight at a
   * time, across all calls. Temporary failures (connection, timeout, 408, 429, 5xx) are tried up to four times,
   * respecting `Retry-After` up to 30 seconds. A batch that is refused (400, 413, 422) or times out is halved. A
   * single text that is refused is cut to its first 8,000, 2,000 and 500 characters before it fails; its vector then
   * only reflects its beginning.
   *
   * @throws EmbeddingFailed if any text has no vector; then none are returned. A text of only white space is never
   *   sent: `empty_text`. Rejects with the signal's reason once it is aborted, leaving no request behind
   */
  embed(
    texts: readonly string[],
    kind: EmbeddingKind,
    options: EmbedOptions,
  ): Promise<readonly Float32Array[]>;
}

const BUILT_IN = "builtin/lexical";
const MOST_ATTEMPTS = 4;
const LONGEST_WAIT_MS = 30_000;
/** The maximum number of concurrent requests of one call. */
const REQUESTS_AT_ONCE = 2;
/**
 * A compatible server's own limit is unknown, whatever the SDK reports, and a small machine has to answer in time.
 */
const COMPATIBLE_TEXTS = 64;
const UNKNOWN_TEXTS = 64;
/**
 * Maximum number of texts in a batch. Larger batches make large responses: 256 vectors of 3,072 numbers are 17 MB of
 * JSON.
 */
const MOST_TEXTS = 256;
/** If a provider refuses large batches, later ones start smaller, but never smaller than this. */
const LEAST_TEXTS = 8;
/** A text that no working provider refuses. */
const HARMLESS: BatchText = { index: 0, text: "text" };

/**
 * Creates the configured embedding model; null for `builtin/lexical`, which needs none. Sends nothing to the provider
 * yet.
 * @throws OperatorError if the provider is not configured or its kind has no embeddings
 */
export async function createEmbedder(
  config: Pick<Config, "embeddings" | "providers">,
  clock: Clock,
  random: RandomSource = systemRandom,
  shared: EmbeddingParts = { lanes: createLanes(), used() {} },
): Promise<Embedder | null> {
  const { model } = config.embeddings;
  if (model === BUILT_IN) return null;
  const slash = model.indexOf("/");
  const name = model.slice(0, slash);
  const provider = config.providers.get(name);
  const hint = `Choose a model of a configured provider of any kind but anthropic, or ${BUILT_IN}.`;
  if (!provider)
    throw new OperatorError(`embeddings.model: is ${model}, but no provider ${name} is configured.`, hint);
  const upstream = await createEmbeddingModel(name, provider, model.slice(slash + 1), clock);
  if (!upstream) {
    const message = `embeddings.model: is ${model}, but providers of kind ${provider.kind} have no embeddings.`;
    throw new OperatorError(message, hint);
  }
  const most = (await upstream.maxEmbeddingsPerCall) ?? UNKNOWN_TEXTS;
  const limit = provider.kind === "openai-compatible" ? COMPATIBLE_TEXTS : MOST_TEXTS;
  const parts = { ...shared, upstream, timeoutMs: provider.timeoutMs, clock, random };
  return new NetworkEmbedder(model, Math.max(1, Math.min(most, limit)), parts);
}

interface EmbedderParts extends EmbeddingParts {
  readonly upstream: EmbeddingModelV4;
  /** The limit for each request. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly random: RandomSource;
}

/** The state that all batches of one call share. */
interface Call {
  readonly prefix: string;
  readonly signal: AbortSignal;
  readonly lane: FairSlots;
  readonly workspaceId: number;
}

class NetworkEmbedder implements Embedder {
  readonly model: string;
  readonly space: string;
  readonly #parts: EmbedderParts;
  readonly #prefixes: Prefixes;
  readonly #queries = new QueryCache();
  /** The maximum number of texts in one request. Reduced when both halves of a failed batch succeed. */
  #mostTexts: number;
  /** The number of batches that were ever halved or cut. */
  #splits = 0;
  #dimensions: number | undefined;

  constructor(model: string, mostTexts: number, parts: EmbedderParts) {
    this.model = model;
    this.#mostTexts = mostTexts;
    this.#parts = parts;
    this.#prefixes = prefixesOf(model);
    this.space = `${model}|unit|${this.#prefixes.id}`;
  }

  async embed(texts: readonly string[], kind: EmbeddingKind, options: EmbedOptions): Promise<Float32Array[]> {
    options.signal?.throwIfAborted();
    const empty = texts.findIndex((text) => text.trim() === "");
    if (empty !== -1) throw this.#failed({ reason: "empty_text", retryable: false, text: empty });
    const found = texts.map((text) => (kind === "query" ? this.#queries.get(text) : undefined));
    const missing = texts.map(pieceOf).filter(({ index }) => !found[index]);
    const made = await this.#embedAll(missing, kind, options);
    for (const [place, { index }] of missing.entries()) {
      found[index] = made[place];
      const text = texts[index];
      const vector = made[place];
      if (kind === "query" && text !== undefined && vector) this.#queries.set(text, vector);
    }
    return found.filter((vector) => vector !== undefined);
  }

  /** The first failure stops the remaining requests. It is thrown once none are in flight. */
  async #embedAll(
    pieces: readonly BatchText[],
    kind: EmbeddingKind,
    { workspaceId, signal }: EmbedOptions,
  ): Promise<Float32Array[]> {
    const stop = new AbortController();
    const call = {
      prefix: this.#prefixes[kind],
      signal: signal ? AbortSignal.any([signal, stop.signal]) : stop.signal,
      lane: this.#parts.lanes[kind],
      workspaceId,
    };
    const vectors: Float32Array[] = [];
    let next = 0;
    const take = (): readonly BatchText[] => {
      const batch = nextBatch(pieces, next, this.#mostTexts, call.prefix);
      next += batch.length;
      return batch;
    };
    const work = async (): Promise<void> => {
      while (next < pieces.length) {
        const leave = await call.lane.enter(workspaceId, call.signal);
        if (leave === null) throw this.#failed({ reason: "busy", retryable: true });
        try {
          const from = next;
          for (const [place, vector] of (await this.#embedBatch(take(), call)).entries())
            vectors[from + place] = vector;
        } finally {
          leave();
        }
      }
    };
    const workers = Array.from({ length: Math.min(REQUESTS_AT_ONCE, pieces.length) }, () =>
      work().catch((error) => {
        stop.abort(error);
      }),
    );
    await Promise.all(workers);
    if (stop.signal.aborted) throw stop.signal.reason;
    return vectors;
  }

  async #embedBatch(
    batch: readonly BatchText[],
    call: Call,
    attempts = MOST_ATTEMPTS,
  ): Promise<Float32Array[]> {
    if (batch.length === 0) return [];
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#ask(batch, call);
      if (Array.isArray(answer)) return answer;
      if (answer.refused) return this.#embedSmaller(batch, call, answer);
      const wait = Math.max(answer.retryAfterMs ?? 0, backoff(attempt, this.#parts.random));
      if (!answer.retryable || attempt >= attempts || wait > LONGEST_WAIT_MS) throw this.#failed(answer);
      await pause(wait, this.#parts.clock, call.signal);
      // A slow machine would never answer the whole batch in time. Each half is tried with the remaining attempts.
      if (answer.reason === "timeout" && batch.length > 1)
        return this.#halve(batch, call, attempts - attempt);
    }
  }

  async #halve(batch: readonly BatchText[], call: Call, attempts?: number): Promise<Float32Array[]> {
    const splits = ++this.#splits;
    const middle = Math.ceil(batch.length / 2);
    const left = await this.#embedBatch(batch.slice(0, middle), call, attempts);
    const right = await this.#embedBatch(batch.slice(middle), call, attempts);
    // Both halves succeeded unsplit, so the size was the problem.
    if (splits === this.#splits) this.#mostTexts = Math.min(this.#mostTexts, Math.max(LEAST_TEXTS, middle));
    return [...left, ...right];
  }

  /** After a refusal, tries the halves, or the beginning of a single text. */
  async #embedSmaller(
    batch: readonly BatchText[],
    call: Call,
    refusal: RequestFault,
  ): Promise<Float32Array[]> {
    const [piece] = batch;
    if (batch.length > 1 || !piece) return this.#halve(batch, call);
    this.#splits++;
    const cut = shorter(piece);
    if (cut) return this.#embedBatch([cut], call);
    // Some providers return 400 for a wrong key, for example. The probe distinguishes a provider that refuses
    // everything from a text at fault.
    const probe = await this.#ask([HARMLESS], call);
    if (!Array.isArray(probe)) throw this.#failed(probe.refused ? refusal : probe);
    throw this.#failed({ reason: "text_refused", retryable: false, text: piece.index });
  }

  /**
   * Sends one request.
   * @throws EmbeddingFailed if the answer cannot be used; the signal's reason if it is aborted
   */
  async #ask(
    batch: readonly BatchText[],
    { prefix, signal, workspaceId }: Call,
  ): Promise<Float32Array[] | RequestFault> {
    const { upstream, timeoutMs, clock } = this.#parts;
    const startedAt = clock.monotonic();
    const values = batch.map(({ text }) => prefix + text);
    let answer: Awaited<ReturnType<typeof askOnce>>;
    try {
      answer = await callFor(workspaceId, () =>
        askOnce(upstream, { values, abortSignal: signal }, timeoutMs, clock),
      );
    } catch (error) {
      signal.throwIfAborted();
      return faultOf(error, clock.now());
    }
    this.#parts.used({
      workspaceId,
      model: this.model,
      tokens: embeddingTokens(values, answer.usage?.tokens),
      durationMs: clock.monotonic() - startedAt,
    });
    const vectors = unitVectors(inOrder(answer.embeddings, answer.response?.body), batch.length);
    const invalid = { reason: "invalid_answer", retryable: false };
    if (typeof vectors === "string") throw this.#failed(invalid, vectors);
    const dimensions = vectors[0]?.length ?? 0;
    this.#dimensions ??= dimensions;
    if (this.#dimensions === dimensions) return vectors;
    const words = `sent vectors with ${dimensions} dimensions, but earlier ones had ${this.#dimensions}`;
    throw this.#failed({ ...invalid, reason: "dimensions" }, words);
  }

  #failed(fault: EmbeddingFault, words?: string): Error {
    return embeddingFailed(this.model, fault, words);
  }
}
