import type { EmbeddingModelV4 } from "@ai-sdk/provider";
import { type Clock, pause } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import { type RandomSource, systemRandom } from "../../base/ids.ts";
import type { Config } from "../../config/config.ts";
import type { FairSlots } from "../../limits/fair-slots.ts";
import { createEmbeddingModel } from "../providers.ts";
import { nextBatch, type Piece, pieceOf, shorter } from "./batch.ts";
import { QueryCache } from "./cache.ts";
import { type EmbeddingFault, embeddingFailed, faultOf, type RequestFault } from "./failure.ts";
import { createLanes, type EmbeddingLanes } from "./lanes.ts";
import { type Prefixes, prefixesOf } from "./prefix.ts";
import { askOnce, backoff } from "./request.ts";
import { embeddingTokens } from "./tokens.ts";
import { inOrder, unitVectors } from "./vectors.ts";

export { EmbeddingFailed } from "./failure.ts";
export { type Prefixes, prefixesOf } from "./prefix.ts";

export type EmbeddingKind = "document" | "query";

/** For whom vectors are asked. */
export interface EmbedOptions {
  readonly workspaceId: number;
  readonly signal?: AbortSignal | undefined;
}

/** A request for vectors that was answered. */
export interface EmbeddingUse {
  readonly workspaceId: number;
  readonly model: string;
  readonly tokens: number;
  readonly durationMs: number;
}

/** What all embedders of a process have in common. */
export interface EmbeddingParts {
  readonly lanes: EmbeddingLanes;
  /** Told of each request that was answered. */
  used(use: EmbeddingUse): void;
}

/** A model that turns texts into vectors, over the network. */
export interface Embedder {
  /** `<provider>/<model>` */
  readonly model: string;
  /** Names the vectors' space. Vectors may be compared only where it is the same; it does not name their dimension. */
  readonly space: string;
  /**
   * One vector of unit length for each text, in order, all of the dimension that the first answer had. `kind` says what
   * the texts are: some models want a prefix. Answers for queries are remembered, 1,000 of them.
   *
   * Texts go out in batches, for which workspaces take turns: two at once for documents, over all calls. What passes
   * (connection, timeout, 408, 429, 5xx) is asked again, four times at most, as late as `Retry-After` says up to 30
   * seconds. A batch that is refused (400, 413, 422) or times out is halved. A single text that is refused is cut to its
   * first 8,000, 2,000 and 500 characters before it is given up: its vector then tells of its beginning alone.
   *
   * @throws EmbeddingFailed When any text has no vector: none is handed back then. A text of white space alone is never
   *   sent: `empty_text`. Rejects with the signal's reason once that is aborted, and leaves no request behind
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
/** Requests of one call at once. */
const REQUESTS_AT_ONCE = 2;
/** A compatible server's own limit is unknown, whatever the SDK says; and a small machine has to answer in time. */
const COMPATIBLE_TEXTS = 64;
const UNKNOWN_TEXTS = 64;
/** Above, answers get large: 256 vectors of 3,072 numbers are 17 MB of JSON. */
const MOST_TEXTS = 256;
/** What a provider refuses in larger batches is not sent in smaller ones than these from the start. */
const LEAST_TEXTS = 8;
/** No provider that works refuses this. */
const HARMLESS: Piece = { index: 0, text: "text" };

/**
 * The configured embedding model; null for `builtin/lexical`, which needs none. Asks nothing of the provider yet.
 * @throws OperatorError When the provider is not configured or its kind has no embeddings
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
  const hint = `Name a model of a configured provider of kind openai-compatible, openai or google, or ${BUILT_IN}.`;
  if (!provider)
    throw new OperatorError(`embeddings.model: is ${model}, but no provider ${name} is configured.`, hint);
  const upstream = await createEmbeddingModel(name, provider, model.slice(slash + 1));
  if (!upstream) {
    const message = `embeddings.model: is ${model}, but providers of kind ${provider.kind} have no embeddings.`;
    throw new OperatorError(message, hint);
  }
  const most = (await upstream.maxEmbeddingsPerCall) ?? UNKNOWN_TEXTS;
  const limit = provider.kind === "openai-compatible" ? COMPATIBLE_TEXTS : MOST_TEXTS;
  const parts = { ...shared, upstream, timeoutMs: provider.timeoutMs, clock, random };
  return new NetworkEmbedder(model, Math.max(1, Math.min(most, limit)), parts);
}

interface Parts extends EmbeddingParts {
  readonly upstream: EmbeddingModelV4;
  /** For one request. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly random: RandomSource;
}

/** What holds for all batches of one call. */
interface Call {
  readonly prefix: string;
  readonly signal: AbortSignal;
  readonly lane: FairSlots;
  readonly workspaceId: number;
}

class NetworkEmbedder implements Embedder {
  readonly model: string;
  readonly space: string;
  readonly #parts: Parts;
  readonly #prefixes: Prefixes;
  readonly #queries = new QueryCache();
  /** Texts in one request: less once halves passed where a whole did not. */
  #mostTexts: number;
  /** Batches that were halved or cut, ever. */
  #splits = 0;
  #dimensions: number | undefined;

  constructor(model: string, mostTexts: number, parts: Parts) {
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

  /** The first failure stops the rest, and is thrown once nothing is under way any more. */
  async #embedAll(
    pieces: readonly Piece[],
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
    const take = (): readonly Piece[] => {
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

  async #embedBatch(batch: readonly Piece[], call: Call, attempts = MOST_ATTEMPTS): Promise<Float32Array[]> {
    if (batch.length === 0) return [];
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#ask(batch, call);
      if (Array.isArray(answer)) return answer;
      if (answer.refused) return this.#embedSmaller(batch, call, answer);
      const wait = Math.max(answer.retryAfterMs ?? 0, backoff(attempt, this.#parts.random));
      if (!answer.retryable || attempt >= attempts || wait > LONGEST_WAIT_MS) throw this.#failed(answer);
      await pause(wait, this.#parts.clock, call.signal);
      // A slow machine never answers the whole in time; each half has the attempts that are left.
      if (answer.reason === "timeout" && batch.length > 1)
        return this.#halve(batch, call, attempts - attempt);
    }
  }

  async #halve(batch: readonly Piece[], call: Call, attempts?: number): Promise<Float32Array[]> {
    const splits = ++this.#splits;
    const middle = Math.ceil(batch.length / 2);
    const left = await this.#embedBatch(batch.slice(0, middle), call, attempts);
    const right = await this.#embedBatch(batch.slice(middle), call, attempts);
    // Both passed as they were, so that it was the size.
    if (splits === this.#splits) this.#mostTexts = Math.min(this.#mostTexts, Math.max(LEAST_TEXTS, middle));
    return [...left, ...right];
  }

  /** After a refusal: the halves, or the one text's beginning. */
  async #embedSmaller(batch: readonly Piece[], call: Call, refusal: RequestFault): Promise<Float32Array[]> {
    const [piece] = batch;
    if (batch.length > 1 || !piece) return this.#halve(batch, call);
    this.#splits++;
    const cut = shorter(piece);
    if (cut) return this.#embedBatch([cut], call);
    // A provider that refuses everything (a wrong key is a 400 to some) must not be taken for a text that is at fault.
    const probe = await this.#ask([HARMLESS], call);
    if (!Array.isArray(probe)) throw this.#failed(probe.refused ? refusal : probe);
    throw this.#failed({ reason: "text_refused", retryable: false, text: piece.index });
  }

  /** One request. @throws EmbeddingFailed for an answer that is not to be used, and the signal's reason */
  async #ask(
    batch: readonly Piece[],
    { prefix, signal, workspaceId }: Call,
  ): Promise<Float32Array[] | RequestFault> {
    const { upstream, timeoutMs, clock } = this.#parts;
    const startedAt = clock.monotonic();
    const values = batch.map(({ text }) => prefix + text);
    let answer: Awaited<ReturnType<typeof askOnce>>;
    try {
      answer = await askOnce(upstream, values, timeoutMs, clock, signal);
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
    const words = `sent vectors of ${dimensions} dimensions, after some of ${this.#dimensions}`;
    throw this.#failed({ ...invalid, reason: "dimensions" }, words);
  }

  #failed(fault: EmbeddingFault, words?: string): Error {
    return embeddingFailed(this.model, fault, words);
  }
}
