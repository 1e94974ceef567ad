import type { EmbeddingModelV4, LanguageModelV4Usage } from "@ai-sdk/provider";
import { AnswerTooLarge } from "../../agents/index.ts";
import { estimateTokens } from "../../agents/model/usage.ts";
import { takeTurn } from "../../base/inflow.ts";
import type { AnswerShare } from "../../models/answer-memory.ts";
import { inOrder } from "../../models/embed/vectors.ts";
import type { DialectAnswer } from "../dialect-answer.ts";
import { UnfinishedAnswer } from "../failures.ts";
import { tokenCount } from "../json.ts";

/** The maximum number of texts in a request if the provider sets no limit. */
const UNKNOWN_TEXTS = 64;
/**
 * The maximum number of numbers in an answer: as text, they take the 64 MiB allowed for an answer that passes
 * through.
 */
const MOST_NUMBERS = 3_200_000;
const BYTES_PER_NUMBER = 8;
/** Characters written in one turn of the event loop. */
const TURN_CHARACTERS = 64 * 1024;

export interface VectorRequest {
  readonly values: readonly string[];
  readonly dimensions: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** The memory that the vectors take is added to it. */
  readonly share: AnswerShare;
  /** Awaited before every request except the first. */
  renew(): Promise<unknown>;
  /** Called with the tokens of all requests that the provider has answered so far, counted or estimated. */
  used(tokens: number): void;
}

export interface Vectors {
  /** In the order of the texts. */
  readonly vectors: readonly (readonly number[])[];
  /** Null unless the provider counted every request. */
  readonly tokens: number | null;
}

/**
 * Requests the vectors of all texts, in as many requests as the provider needs, one after the other. Fails as soon as
 * its memory is needed.
 * @throws AnswerTooLarge, UnfinishedAnswer, or the provider's error
 */
export async function embedAll(
  model: EmbeddingModelV4,
  { values, dimensions, headers, signal, share, renew, used }: VectorRequest,
): Promise<Vectors> {
  const most = Math.max(1, (await model.maxEmbeddingsPerCall) ?? UNKNOWN_TEXTS);
  const vectors: (readonly number[])[] = [];
  let tokens: number | null = 0;
  let numbers = 0;
  let estimated = 0;
  const abortSignal = AbortSignal.any([signal, share.signal]);
  for (let from = 0; from < values.length; from += most) {
    const batch = values.slice(from, from + most);
    if (from > 0) await renew();
    const answer = await model.doEmbed({
      ...{ values: batch, headers, abortSignal },
      ...(dimensions === undefined ? {} : { dimensions }),
    });
    const made = inOrder(answer.embeddings, answer.response?.body);
    const counted = tokenCount(answer.usage?.tokens);
    tokens = tokens === null || counted === undefined ? null : tokens + counted;
    estimated += counted ?? estimateTokens(byteLength(batch));
    used(estimated);
    if (made.length !== batch.length) throw new UnfinishedAnswer("error");
    const before = numbers;
    for (const vector of made) numbers += vector.length;
    share.add((numbers - before) * BYTES_PER_NUMBER);
    // The first vectors show how many numbers to expect, so too many are refused before the remaining requests are
    // paid for.
    const expected = numbers + (made[0]?.length ?? 0) * (values.length - from - batch.length);
    if (expected > MOST_NUMBERS) throw new AnswerTooLarge("The model's vectors have too many numbers.");
    vectors.push(...made);
  }
  return { vectors, tokens };
}

function byteLength(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/**
 * Vectors as an answer for a client, written while it is read: writing millions of numbers at once would block every
 * other call.
 */
export class VectorAnswer implements DialectAnswer {
  readonly status = 200;
  readonly headers = new Headers({ "content-type": "application/json" });
  readonly usage: LanguageModelV4Usage | null;
  readonly hide: (text: string) => string;
  readonly #texts: Iterator<string>;
  readonly #workspaceId: number;
  readonly #share: AnswerShare;

  /** @param texts the parts of the body */
  constructor(
    texts: Iterable<string>,
    {
      tokens,
      hide,
      workspaceId,
      share,
    }: Pick<DialectAnswer, "hide"> & {
      readonly tokens: number | null;
      readonly workspaceId: number;
      /** Has the vectors' memory. What is written is added to it. */
      readonly share: AnswerShare;
    },
  ) {
    this.usage = tokens === null ? null : vectorUsage(tokens);
    this.hide = hide;
    this.#texts = texts[Symbol.iterator]();
    this.#workspaceId = workspaceId;
    this.#share = share;
  }

  get failure(): Error | null {
    return this.#share.failure;
  }

  /** @throws AnswerTooLarge if its memory is needed */
  async read(): Promise<Uint8Array | undefined> {
    const parts: string[] = [];
    let length = 0;
    while (length < TURN_CHARACTERS) {
      const { value, done } = this.#texts.next();
      if (done === true) break;
      parts.push(value);
      length += value.length;
    }
    if (length === 0) return undefined;
    const wait = takeTurn(this.#workspaceId, { bytes: length });
    if (wait) await wait;
    const bytes = Buffer.from(parts.join(""));
    this.#share.add(bytes.length);
    return bytes;
  }

  end(): void {
    this.#share.leave();
  }
}

/** Vectors do not count as output. */
export function vectorUsage(tokens: number): LanguageModelV4Usage {
  return {
    inputTokens: { total: tokens, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 0, text: 0, reasoning: 0 },
  };
}
