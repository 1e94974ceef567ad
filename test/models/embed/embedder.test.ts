/** What an embedder sends and returns, and what it does when its upstream fails. */
import { describe, expect, test } from "bun:test";
import { AnswerTooLarge } from "../../../src/agents/index.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { OperatorError } from "../../../src/base/errors.ts";
import type { ProviderConfig } from "../../../src/config/config.ts";
import { createEmbedder } from "../../../src/models/embed/embedder.ts";
import { boundedFetch } from "../../../src/models/embed/fetch.ts";
import { FakeClock } from "../../support/clock.ts";
import type { EmbeddingsBehaviour, EmbeddingsScript } from "../../support/fake-embeddings.ts";
import {
  asked,
  clock,
  embedder,
  failure,
  forgetRequests,
  inputs,
  KEY,
  TIMEOUT,
  texts,
  unit,
  upstream,
  useUpstream,
} from "./embedder-support.ts";

useUpstream();

describe("no embedder is created", () => {
  const providers = new Map<string, ProviderConfig>([["a", { kind: "anthropic", timeoutMs: 1 }]]);
  test.each([
    ["a/claude", "embeddings.model: is a/claude, but providers of kind anthropic have no embeddings."],
    ["b/m", "embeddings.model: is b/m, but no provider b is configured."],
    ["builtin/other", "embeddings.model: is builtin/other, but no provider builtin is configured."],
  ])("of %s", async (model, message) => {
    const error = await createEmbedder({ embeddings: { model }, providers }, clock).catch((e: unknown) => e);
    if (!(error instanceof OperatorError)) throw error;
    expect(error.message).toBe(message);
    expect(error.hint).toContain("any kind but anthropic, or builtin/lexical");
  });

  test("for builtin/lexical, which needs none", async () => {
    expect(await createEmbedder({ embeddings: { model: "builtin/lexical" }, providers }, clock)).toBeNull();
  });
});

describe("an upstream's failure", () => {
  // Every error of the fake upstream contains a text that must not be passed on.
  const message = `${KEY} upstream says`;
  test.each<[EmbeddingsBehaviour, number, string, boolean, string]>([
    [{ status: 401, message }, 1, "http_401", false, "refused the key (401)"],
    [{ status: 403, message }, 1, "http_403", false, "refused the key (403)"],
    [{ status: 404, message }, 1, "http_404", false, "was not found (404)"],
    [{ status: 402, message }, 1, "http_402", false, "answered with status 402"],
    [{ status: 408, message }, 4, "timeout", true, "did not answer in time"],
    [{ status: 429, message }, 4, "rate_limited", true, "accepts no more requests at the moment"],
    [{ status: 500, message }, 4, "http_500", true, "answered with status 500"],
    [{ status: 503, message }, 4, "http_503", true, "answered with status 503"],
    [{ close: true }, 4, "connection", true, "could not be reached or closed the connection"],
    // Two calls: the text is refused, and then a harmless one too, so the provider refuses everything.
    [{ status: 400, message }, 2, "http_400", false, "answered with status 400"],
    [{ status: 413, message }, 2, "http_413", false, "answered with status 413"],
    [{ status: 422, message }, 2, "http_422", false, "answered with status 422"],
    [{ count: 0 }, 1, "invalid_answer", false, "sent 0 vectors for 1 texts"],
    [{ count: 2 }, 1, "invalid_answer", false, "sent 2 vectors for 1 texts"],
    [{ value: null }, 1, "invalid_answer", false, "sent an answer that does not match the API"],
    [
      { zero: true },
      1,
      "invalid_answer",
      false,
      "sent a vector that is zero or contains a value that is not",
    ],
    [{ dims: 1 }, 1, "invalid_answer", false, "sent a vector of 1 dimensions; 2 to 8192 are supported"],
    [
      { dims: 8_193 },
      1,
      "invalid_answer",
      false,
      "sent a vector of 8193 dimensions; 2 to 8192 are supported",
    ],
    [{ body: `<html>${KEY}` }, 1, "invalid_answer", false, "sent an answer that does not match the API"],
    [
      { body: '{"data":[{"embedding":[1,1e999]}]}' },
      1,
      "invalid_answer",
      false,
      "sent an answer that does not",
    ],
    [
      { body: '{"data":[{"embedding":"AACAPw=="}]}' },
      1,
      "invalid_answer",
      false,
      "sent an answer that does not",
    ],
  ])("%j after %i requests", async (behaviour, requests, reason, retryable, words) => {
    upstream.always(behaviour);
    const error = await failure((await embedder()).embed(["a text"], "document"));
    expect(error).toMatchObject({ reason, retryable, text: undefined });
    expect(error.message).toStartWith(`The embedding model up/m ${words}`);
    expect(`${error.message} ${error.stack} ${JSON.stringify(error)}`).not.toContain(KEY);
    expect(error.cause).toBeUndefined();
    expect(inputs()).toHaveLength(requests);
    expect(clock.waits).toEqual(requests === 4 ? [500, 1_000, 2_000] : []);
  });

  test("a wrong key is refused and not quoted", async () => {
    const error = await failure((await embedder("up/m", { apiKey: "sk-other" })).embed(["a"], "query"));
    expect(error).toMatchObject({ reason: "http_401", retryable: false });
    expect(error.message).not.toContain("sk-other");
  });

  test("a port without a listener is a failed connection", async () => {
    const gone = await embedder("up/m", { baseUrl: "http://127.0.0.1:1/v1" });
    expect(await failure(gone.embed(["a"], "document"))).toMatchObject({
      reason: "connection",
      retryable: true,
    });
    expect(clock.waits).toHaveLength(3);
  });

  test("the failure of one batch stops the others, and nothing is returned", async () => {
    const model = await embedder();
    let failed = 0;
    upstream.always((_, index) => {
      if (index === asked) return { hang: true };
      failed++;
      return { status: 404 };
    });
    expect((await failure(model.embed(texts(500), "document"))).reason).toBe("http_404");
    expect(failed).toBe(1);
    expect(inputs()).toHaveLength(2);
  });
});

describe("vectors of another dimension are an error", () => {
  test("in one answer", async () => {
    upstream.script({ body: '{"data":[{"embedding":[1,2]},{"embedding":[1,2,3]}]}' });
    const error = await failure((await embedder()).embed(["a", "b"], "document"));
    expect(error.message).toBe(
      "The embedding model up/m sent vectors of different dimensions in one answer.",
    );
  });

  test("between answers, for good", async () => {
    const model = await embedder();
    await model.embed(["a"], "document");
    upstream.script({ dims: 32 });
    const error = await failure(model.embed(["b"], "query"));
    expect(error).toMatchObject({ reason: "dimensions", retryable: false });
    expect(error.message).toBe(
      "The embedding model up/m sent vectors with 32 dimensions, but earlier ones had 64.",
    );
    expect(await model.embed(["b"], "query")).toHaveLength(1);
  });
});

describe("an empty text is never sent", () => {
  test.each([[[""]], [["fine", " \n\t"]]])("%j", async (given) => {
    for (const kind of ["document", "query"] as const) {
      const error = await failure((await embedder("up/e5")).embed(given, kind));
      expect(error).toMatchObject({ reason: "empty_text", retryable: false, text: given.length - 1 });
    }
    expect(inputs()).toEqual([]);
  });

  test("nor is an empty list of texts", async () => {
    expect(await (await embedder()).embed([], "document")).toEqual([]);
    expect(inputs()).toEqual([]);
  });
});

describe("a temporary failure is retried", () => {
  test.each<[string, readonly EmbeddingsScript[], readonly number[]]>([
    ["a broken connection", [{ close: true }], [500]],
    ["three failures", [{ status: 500 }, { status: 408 }, { close: true }], [500, 1_000, 2_000]],
    ["Retry-After in seconds", [{ status: 429, headers: { "retry-after": "7" } }], [7_000]],
    [
      "Retry-After as a date",
      [() => ({ status: 503, headers: { "retry-after": new Date(clock.now() + 3_000).toUTCString() } })],
      [3_000],
    ],
    ["a Retry-After of zero", [{ status: 429, headers: { "retry-after": "0" } }], [500]],
    ["a meaningless Retry-After", [{ status: 429, headers: { "retry-after": "soon" } }], [500]],
  ])("%s", async (_, steps, waits) => {
    upstream.script(...steps);
    expect(await (await embedder()).embed(["a text"], "document")).toEqual([unit("a text")]);
    expect(clock.waits).toEqual([...waits]);
  });

  test("but not if Retry-After is too long, in which case it is passed on", async () => {
    upstream.script({ status: 429, headers: { "retry-after": "31" } });
    const error = await failure((await embedder()).embed(["a"], "document"));
    expect(error).toMatchObject({ reason: "rate_limited", retryable: true, retryAfterMs: 31_000 });
    expect(clock.waits).toEqual([]);
  });
});

describe("a provider that does not answer in time", () => {
  test.each([[["a"]], [["a", "b"]]])("is given up after four requests, and told so: %j", async (given) => {
    upstream.always({ hang: true });
    const failing = failure((await embedder()).embed(given, "document"));
    for (let request = 1; request <= 4; request++) {
      await upstream.arrived(asked + request);
      clock.advance(TIMEOUT);
    }
    expect(await failing).toMatchObject({ reason: "timeout", retryable: true });
    expect(inputs()).toHaveLength(4);
  });

  test("gets half as much in the next request, and from then on no more than that", async () => {
    const model = await embedder();
    upstream.always(({ input }) => (input.length > 16 ? { hang: true } : {}));
    const made = model.embed(texts(64), "document");
    for (const request of [1, 2]) {
      await upstream.arrived(asked + request);
      clock.advance(TIMEOUT);
    }
    await upstream.arrived(asked + 5);
    clock.advance(TIMEOUT);
    expect(await made).toEqual(texts(64).map(unit));
    expect(inputs().map(({ length }) => length)).toEqual([64, 32, 16, 16, 32, 16, 16]);
    forgetRequests();
    await model.embed(texts(32), "document");
    expect(inputs().map(({ length }) => length)).toEqual([16, 16]);
  });
});

describe("the signal", () => {
  const reason = new Error("enough");

  test("that is already aborted sends nothing", async () => {
    const given = (await embedder()).embed(["a"], "query", AbortSignal.abort(reason));
    expect(await given.catch((error: unknown) => error)).toBe(reason);
    expect(inputs()).toEqual([]);
  });

  test("ends a request in progress", async () => {
    upstream.always({ hang: true });
    const control = new AbortController();
    const given = (await embedder()).embed(["a"], "query", control.signal).catch((error: unknown) => error);
    await upstream.arrived(asked + 1);
    control.abort(reason);
    expect(await given).toBe(reason);
    while (!upstream.requests.at(-1)?.aborted) await new Promise((resolve) => setImmediate(resolve));
  });

  test("ends a wait", async () => {
    upstream.always({ status: 500 });
    const control = new AbortController();
    clock.after = (ms, task) => {
      if (ms < TIMEOUT) queueMicrotask(() => control.abort(reason));
      return FakeClock.prototype.after.call(clock, ms, task);
    };
    const given = (await embedder()).embed(["a"], "query", control.signal);
    expect(await given.catch((error: unknown) => error)).toBe(reason);
    expect(inputs()).toHaveLength(1);
  });

  test("of one call does not affect others, even those waiting for their turn", async () => {
    const model = await embedder();
    const gate = Promise.withResolvers<void>();
    upstream.script({ gate: gate.promise }, { gate: gate.promise });
    const first = model.embed(texts(128), "document");
    await upstream.arrived(asked + 2);
    const control = new AbortController();
    const second = model.embed(["b"], "document", control.signal).catch((error: unknown) => error);
    const third = model.embed(["c"], "document");
    control.abort(reason);
    expect(await second).toBe(reason);
    gate.resolve();
    expect(await first).toHaveLength(128);
    expect(await third).toEqual([unit("c")]);
    expect(inputs().map(({ length }) => length)).toEqual([64, 64, 1]);
  });
});

test("an oversized answer is not read to its end", async () => {
  const url = new Request(`${upstream.baseUrl}/models`);
  const whole = await (await boundedFetch(systemClock)(url)).text();
  const response = await boundedFetch(systemClock, whole.length)(url);
  expect([response.status, response.headers.get("content-type")]).toEqual([
    401,
    "application/json;charset=utf-8",
  ]);
  expect(await response.text()).toBe(whole);
  const reading = boundedFetch(systemClock, whole.length - 1)(url).then((cut) => cut.text());
  expect(await reading.catch((error: unknown) => error)).toBeInstanceOf(AnswerTooLarge);
});

test("vectors in a different order are reordered to match the texts", async () => {
  upstream.script({ reversed: true });
  expect(await (await embedder()).embed(texts(5), "document")).toEqual(texts(5).map(unit));
});

test("vectors have unit length, whatever length they had", async () => {
  upstream.script({ body: '{"data":[{"embedding":[3e200,4e200]},{"embedding":[-3e-200,0]}]}' });
  const vectors = await (await embedder()).embed(["a", "b"], "document");
  expect(vectors).toEqual([Float32Array.of(0.6, 0.8), Float32Array.of(-1, 0)]);
});

describe("queries are cached", () => {
  test("documents are not", async () => {
    const model = await embedder();
    const [first] = await model.embed(["same"], "query");
    first?.fill(0);
    (await model.embed(["same"], "query"))[0]?.fill(0);
    expect(await model.embed(["other", "same"], "query")).toEqual([unit("other"), unit("same")]);
    await model.embed(["same"], "document");
    await model.embed(["same"], "document");
    expect(inputs()).toEqual([["same"], ["other"], ["same"], ["same"]]);
  });

  test("the thousand most recent ones", async () => {
    const model = await embedder();
    await model.embed(["first", "second"], "query");
    await model.embed(["first"], "query");
    await model.embed(texts(999), "query");
    forgetRequests();
    await model.embed(["first", ...texts(999)], "query");
    expect(inputs()).toEqual([]);
    await model.embed(["second"], "query");
    expect(inputs()).toEqual([["second"]]);
  });

  test("failures are not", async () => {
    const model = await embedder();
    upstream.script({ status: 401 });
    await failure(model.embed(["a"], "query"));
    expect(await model.embed(["a"], "query")).toEqual([unit("a")]);
  });
});

test("a model gets its prefixes, and its space is named after them", async () => {
  const model = await embedder("up/nomic-embed-text:v1.5");
  await model.embed(["what"], "query");
  await model.embed(["that"], "document");
  expect(inputs()).toEqual([["search_query: what"], ["search_document: that"]]);
  expect(model.model).toBe("up/nomic-embed-text:v1.5");
  expect(model.space).toBe("up/nomic-embed-text:v1.5|unit|nomic");
  expect((await embedder("up/text-embedding-3-small")).space).toBe("up/text-embedding-3-small|unit|none");
});
