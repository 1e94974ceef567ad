import { afterAll, afterEach, beforeAll, beforeEach, expect } from "bun:test";
import type { ProviderConfig } from "../../../src/config/config.ts";
import {
  createEmbedder,
  type Embedder,
  EmbeddingFailed,
  type EmbeddingKind,
  type EmbeddingUse,
} from "../../../src/models/embed/embedder.ts";
import { createLanes } from "../../../src/models/embed/lanes.ts";
import { FakeClock } from "../../support/clock.ts";
import { type FakeEmbeddings, fakeVector, startFakeEmbeddings } from "../../support/fake-embeddings.ts";

export const TIMEOUT = 3_600_000;

export const DIMS = 64;

export const KEY = "sk-secret-1";

/** Waits end at once and are recorded. Timeouts, which are longer, elapse only when the test advances the clock. */
class ImpatientClock extends FakeClock {
  readonly waits: number[] = [];
  /** Pending timeouts. */
  armed = 0;

  override after(ms: number, task: () => void): () => void {
    const cancel = super.after(ms, task);
    if (ms === TIMEOUT) {
      this.armed++;
      return () => {
        this.armed--;
        cancel();
      };
    }
    this.waits.push(ms);
    queueMicrotask(() => this.advance(ms));
    return cancel;
  }
}

export let upstream: FakeEmbeddings;

export let clock: ImpatientClock;

export let asked = 0;

/** An embedder whose calls all belong to one workspace. */
interface OneWorkspace extends Omit<Embedder, "embed"> {
  embed(
    texts: readonly string[],
    kind: EmbeddingKind,
    signal?: AbortSignal,
  ): Promise<readonly Float32Array[]>;
}

export async function embedder(model?: string, provider?: Partial<ProviderConfig>): Promise<OneWorkspace> {
  const made = await sharedEmbedder(model, provider);
  return { ...made, embed: (texts, kind, signal) => made.embed(texts, kind, { workspaceId: 1, signal }) };
}

export const uses: EmbeddingUse[] = [];

export async function sharedEmbedder(
  model = "up/m",
  provider: Partial<ProviderConfig> = {},
): Promise<Embedder> {
  const up: ProviderConfig = {
    kind: "openai-compatible",
    baseUrl: upstream.baseUrl,
    apiKey: KEY,
    timeoutMs: TIMEOUT,
    ...provider,
  };
  // Jitter at its maximum, so each wait has its nominal length.
  const made = await createEmbedder(
    { embeddings: { model }, providers: new Map([["up", up]]) },
    clock,
    (bytes) => bytes.fill(0),
    { lanes: createLanes(), used: (use) => void uses.push(use) },
  );
  if (!made) throw new Error("no embedder was made");
  return made;
}

/** Makes `inputs` begin with the next request. */
export function forgetRequests(): void {
  asked = upstream.requests.length;
}

export const inputs = () => upstream.requests.slice(asked).map(({ input }) => input);

export const texts = (count: number) => Array.from({ length: count }, (_, index) => `text number ${index}`);

export const unit = (text: string) => Float32Array.from(fakeVector(text, DIMS));

export async function failure(embedding: Promise<unknown>): Promise<EmbeddingFailed> {
  const error = await embedding.then(
    () => "nothing failed",
    (reason: unknown) => reason,
  );
  if (error instanceof EmbeddingFailed) return error;
  throw new Error(`expected an EmbeddingFailed: ${error}`);
}

/** Starts the upstream of a file's tests, and a clock for each test. */
export function useUpstream(): void {
  beforeAll(() => {
    upstream = startFakeEmbeddings({ dims: DIMS, key: KEY });
  });
  afterAll(() => upstream.stop());
  beforeEach(() => {
    clock = new ImpatientClock();
    forgetRequests();
  });
  afterEach(() => {
    expect(clock.armed).toBe(0);
    upstream.script();
    upstream.always({});
  });
}
