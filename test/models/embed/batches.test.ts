/** Texts are sent in batches. Batches take turns, and are split if they are refused. */
import { describe, expect, test } from "bun:test";
import { fakeVector } from "../../support/fake-embeddings.ts";
import {
  asked,
  clock,
  DIMS,
  embedder,
  failure,
  inputs,
  KEY,
  sharedEmbedder,
  texts,
  unit,
  upstream,
  uses,
  useUpstream,
} from "./embedder-support.ts";

useUpstream();

describe("a refused batch", () => {
  test("is halved until the text that is too long is found, which is then cut", async () => {
    upstream.always(({ input }) => (input.some(({ length }) => length > 2_500) ? { status: 413 } : {}));
    const given = texts(8).map((text, index) => (index === 5 ? "long ".repeat(2_000) : text));
    const model = await embedder();
    const vectors = await model.embed(given, "document");
    expect(vectors).toEqual(given.map((text) => unit(text.slice(0, 2_000))));
    // The text was the problem, not the number of texts: full batches are still sent.
    await model.embed(texts(64), "document");
    expect(inputs().pop()).toHaveLength(64);
    expect(
      inputs()
        .slice(0, -1)
        .map((input) => input.map(({ length }) => length).join(" ")),
    ).toEqual([
      "13 13 13 13 13 9999 13 13",
      "13 13 13 13",
      "13 9999 13 13",
      "13 9999",
      "13",
      "9999",
      "8000",
      "2000",
      "13 13",
    ]);
  });

  test("whose halves succeed makes later batches smaller, but not smaller than eight", async () => {
    const model = await embedder();
    upstream.always(({ input }) => (input.length > 32 ? { status: 422 } : {}));
    await model.embed(texts(64), "document");
    await model.embed(texts(64), "document");
    upstream.always(({ input }) => (input.length > 2 ? { status: 400 } : {}));
    await model.embed(texts(8), "document");
    upstream.always({});
    await model.embed(texts(16), "document");
    expect(inputs().map(({ length }) => length)).toEqual(
      [
        [64, 32, 32],
        [32, 32],
        [8, 4, 2, 2, 4, 2, 2],
        [8, 8],
      ].flat(),
    );
  });

  test("by a server that answers 500 to long texts counts as refused", async () => {
    const message = "input is too large to process. increase the physical batch size";
    upstream.always(({ input }) =>
      input.some(({ length }) => length > 600) ? { status: 500, message } : {},
    );
    const long = "word ".repeat(200).trim();
    expect(await (await embedder()).embed([long], "document")).toEqual([unit(long.slice(0, 500))]);
    expect(clock.waits).toEqual([]);
  });

  test("of one text that remains too long when cut fails and names the text", async () => {
    upstream.always(({ input }) => (input.some((text) => text.includes("bad")) ? { status: 400 } : {}));
    const error = await failure((await embedder()).embed(["good", "fine", "bad"], "document"));
    expect(error).toMatchObject({ reason: "text_refused", retryable: false, text: 2 });
    expect(inputs().at(-1)).toEqual(["text"]);
  });

  test("is not blamed on its text if the provider fails in the meantime", async () => {
    upstream.always(({ input }) => ({ status: input[0] === "text" ? 401 : 400 }));
    const error = await failure((await embedder()).embed(["a"], "document"));
    expect(error).toMatchObject({ reason: "http_401", text: undefined });
  });

  test("never splits a character in two", async () => {
    upstream.always(({ input }) => (input.some(({ length }) => length > 500) ? { status: 400 } : {}));
    const given = `a${"\u{1f600}".repeat(400)}\ud800`;
    await (await embedder()).embed([given], "document");
    expect(inputs()).toEqual([[given.toWellFormed()], [given.slice(0, 500).toWellFormed()]]);
  });
});

describe("batches", () => {
  test("contain 64 texts for a compatible server, two at once across all calls, and the vectors keep their order", async () => {
    const gate = Promise.withResolvers<void>();
    upstream.always({ gate: gate.promise });
    const model = await embedder();
    const made = [model.embed(texts(150), "document"), model.embed(texts(3), "document")];
    await upstream.arrived(asked + 2);
    // A query does not queue behind documents.
    const query = model.embed(["now"], "query");
    await upstream.arrived(asked + 3);
    expect(inputs().map(({ length }) => length)).toEqual([64, 64, 1]);
    gate.resolve();
    const [first, second] = await Promise.all(made);
    expect(first).toEqual(texts(150).map(unit));
    expect(second).toEqual(texts(3).map(unit));
    expect(await query).toEqual([unit("now")]);
    expect(inputs()).toHaveLength(5);
  });

  test("contain 256 kB of text, and each text at most 64,000 characters", async () => {
    const given = ["é".repeat(70_000), "x".repeat(90_000), "y".repeat(64_000), "z".repeat(100)];
    await (await embedder()).embed(given, "document");
    const lengths = inputs().map((input) => input.map(({ length }) => length).join(" "));
    expect(lengths.sort()).toEqual(["100", "64000 64000 64000"]);
  });

  test("wait their turn, up to a thousand of them", async () => {
    upstream.always({ hang: true });
    const model = await embedder();
    const control = new AbortController();
    const waiting = Array.from({ length: 1_002 }, () =>
      model.embed(["a"], "document", control.signal).catch((error: unknown) => error),
    );
    expect(await failure(model.embed(["b"], "document"))).toMatchObject({ reason: "busy", retryable: true });
    control.abort("enough");
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(["enough"]));
    upstream.always({});
    expect(await model.embed(["b"], "document")).toEqual([unit("b")]);
  });

  test("of another workspace are next, however many of the first one wait", async () => {
    const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
    upstream.always((_request, index) => {
      const gate = gates[index - asked];
      return gate ? { gate: gate.promise } : {};
    });
    const model = await sharedEmbedder();
    const busy = texts(50).map((text) => model.embed([text], "document", { workspaceId: 1 }));
    await upstream.arrived(asked + 2);
    const calm = [
      model.embed(["b"], "document", { workspaceId: 2 }),
      model.embed(["c"], "document", { workspaceId: 3 }),
    ];
    for (const [index, gate] of gates.slice(0, 3).entries()) {
      gate.resolve();
      await upstream.arrived(asked + 3 + index);
    }
    // By its second turn, the first workspace has no request in flight either.
    expect(inputs().slice(2, 5)).toEqual([["b"], ["text number 2"], ["c"]]);
    for (const gate of gates) gate.resolve();
    await Promise.all([...busy, ...calm]);
    expect(inputs()).toHaveLength(52);
  });

  test("of queries leave four slots to workspaces that use none", async () => {
    upstream.always({ hang: true });
    const model = await sharedEmbedder();
    const control = new AbortController();
    const { signal } = control;
    const ask = (workspaceId: number, text: string): Promise<unknown> =>
      model.embed([text], "query", { workspaceId, signal }).catch((error: unknown) => error);
    const busy = texts(40).map((text) => ask(1, text));
    await upstream.arrived(asked + 12);
    const calm = ask(2, "here");
    await upstream.arrived(asked + 13);
    expect(inputs().at(-1)).toEqual(["here"]);
    control.abort("enough");
    expect(new Set(await Promise.all([...busy, calm]))).toEqual(new Set(["enough"]));
  });

  test("are counted in tokens for their workspace, by an estimate if the count is implausible", async () => {
    const model = await sharedEmbedder();
    const answer = (tokens: number) => ({
      body: JSON.stringify({
        data: [{ index: 0, embedding: fakeVector("12345678", DIMS) }],
        usage: { prompt_tokens: tokens, total_tokens: tokens },
      }),
    });
    uses.length = 0;
    upstream.script(answer(3), answer(900_000_000), answer(0));
    for (const workspaceId of [7, 8, 9]) await model.embed(["12345678"], "document", { workspaceId });
    expect(uses.map(({ workspaceId, model: name, tokens }) => [workspaceId, name, tokens])).toEqual([
      [7, "up/m", 3],
      [8, "up/m", 2],
      [9, "up/m", 2],
    ]);
  });

  test("are estimated if there are too few tokens for the texts' bytes", async () => {
    const model = await sharedEmbedder();
    const texts = ["a", "b".repeat(5_375)];
    const answer = (tokens: number) => ({
      body: JSON.stringify({
        data: texts.map((text, index) => ({ index, embedding: fakeVector(text, DIMS) })),
        usage: { prompt_tokens: tokens, total_tokens: tokens },
      }),
    });
    uses.length = 0;
    upstream.script(answer(9), answer(10));
    for (const workspaceId of [7, 8]) await model.embed(texts, "document", { workspaceId });
    expect(uses.map(({ tokens }) => tokens)).toEqual([1_344, 10]);
  });

  test("go to OpenAI and to a compatible server as floats", async () => {
    for (const kind of ["openai", "openai-compatible"] as const) {
      const model = await embedder("up/org/m", { kind, headers: { "x-team": "blue" } });
      expect(await model.embed(["a"], "document")).toEqual([unit("a")]);
      expect(upstream.requests.at(-1)).toMatchObject({
        model: "org/m",
        encoding: "float",
        headers: { authorization: `Bearer ${KEY}`, "x-team": "blue" },
      });
    }
  });

  test("go to OpenAI with up to 256 texts, although it would accept more", async () => {
    await (await embedder("up/m", { kind: "openai" })).embed(texts(300), "document");
    expect(
      inputs()
        .map(({ length }) => length)
        .toSorted(),
    ).toEqual([256, 44]);
  });

  test("go to Gemini in its own format", async () => {
    const paths: string[] = [];
    const gemini = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        paths.push(new URL(request.url).pathname);
        const one = { values: [3, 4] };
        if (request.headers.get("x-goog-api-key") !== KEY) return new Response(null, { status: 401 });
        const body: unknown = await request.json();
        const many = JSON.stringify(body).split('"text"').length - 1;
        return Response.json({ embedding: one, embeddings: new Array(many).fill(one) });
      },
    });
    try {
      const model = await embedder("up/gem", { kind: "google", baseUrl: `http://127.0.0.1:${gemini.port}` });
      const vectors = await model.embed(texts(101), "document");
      expect(vectors).toHaveLength(101);
      expect(vectors[100]).toEqual(Float32Array.of(0.6, 0.8));
      expect(paths.sort()).toEqual(["/models/gem:batchEmbedContents", "/models/gem:embedContent"]);
    } finally {
      await gemini.stop(true);
    }
  });
});
