import { afterAll, expect, test } from "bun:test";
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { OPEN_POLICY, type TierPolicy } from "../../src/access/tier-policy.ts";
import { systemClock } from "../../src/base/clock.ts";
import { Problem } from "../../src/base/errors.ts";
import { callingWorkspace } from "../../src/models/calling-workspace.ts";
import * as gateway from "../../src/models/gateway.ts";
import { startFakeModel } from "../support/fake-model.ts";

const upstream = startFakeModel();
afterAll(() => upstream.close());

const ASK: LanguageModelV4CallOptions = {
  prompt: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
};

async function open(policy: () => TierPolicy) {
  const made = await gateway.createModelGateway(
    {
      providers: new Map([["up", { kind: "openai-compatible", baseUrl: upstream.url, timeoutMs: 60_000 }]]),
      tiers: new Map([[1, { tier: 1, name: "one", models: ["up/a", "up/b"] }]]),
      aliases: new Map(),
      priceList: { unknown: "free" },
      prices: new Map([["up/a", { input: 1, output: 2 }]]),
    },
    systemClock,
    16,
  );
  return { made, models: made.open(policy, 1, 1) };
}

async function codeOf(asked: PromiseLike<unknown>): Promise<string> {
  try {
    await asked;
    return "done";
  } catch (error) {
    return error instanceof Problem ? error.code : String(error);
  }
}

test("the model gateway's module exports only itself, and it exposes only tiers, names, prices and guarded models", async () => {
  expect(Object.keys(gateway)).toEqual(["createModelGateway"]);
  const { made, models } = await open(() => OPEN_POLICY);
  expect(Object.keys(made).sort()).toEqual([
    "enter",
    "names",
    "open",
    "openForClient",
    "price",
    "priceOf",
    "tiers",
  ]);
  const shape = ["doGenerate", "doStream", "modelId", "provider", "specificationVersion", "supportedUrls"];
  for (const { model } of models) expect(Object.keys(model).sort()).toEqual(shape);
});

test("only the model gateway imports the providers' language models, and only those import an SDK", async () => {
  const src = `${import.meta.dir}/../../src`;
  const found: string[] = [];
  for await (const path of new Bun.Glob("**/*.ts").scan(src)) {
    // The console shows lines of example programs, but imports none of them.
    if (path.startsWith("console/")) continue;
    const text = await Bun.file(`${src}/${path}`).text();
    if (/from "[^"]*\/providers\/index\.ts"/.test(text)) found.push(path);
    if (/(?:from |import\()"@ai-sdk\/(?!provider")/.test(text)) found.push(path);
  }
  const others = found.filter((path) => !path.startsWith("models/providers/"));
  expect([...new Set(others)].sort()).toEqual(["models/embed/embedder.ts", "models/gateway.ts"]);
  // The only function that the embedder imports cannot generate text.
  const taken = (await Bun.file(`${src}/models/embed/embedder.ts`).text()).match(
    /^import (.+) from "\.\.\/providers\/index\.ts"/gm,
  );
  expect(taken).toEqual(['import { createEmbeddingModel } from "../providers/index.ts"']);
});

test("an opened model is refused at the call if the policy has since forbidden it or its tier", async () => {
  let policy: TierPolicy = OPEN_POLICY;
  const { models } = await open(() => policy);
  const forbidding: TierPolicy[] = [
    { tiers: null, models: { allow: ["*"], deny: ["up/*"] } },
    { tiers: null, models: { allow: [], deny: [] } },
    { tiers: [2], models: OPEN_POLICY.models },
  ];
  for (policy of forbidding) {
    for (const { model } of models) {
      expect(await codeOf(model.doStream(ASK))).toBe("model_forbidden");
      expect(await codeOf(model.doGenerate(ASK))).toBe("model_forbidden");
    }
  }
  expect(upstream.requests).toEqual([]);
  policy = OPEN_POLICY;
  for (const { model } of models) expect(await codeOf(model.doGenerate(ASK))).toBe("done");
  expect(upstream.requests.map(({ model }) => model)).toEqual(["a", "b"]);
});

test("an unlisted model costs nothing", async () => {
  const { made } = await open(() => OPEN_POLICY);
  expect(made.price("up/a")).toEqual({ input: 1, output: 2 });
  for (const name of ["up/b", "up/A", "a", ""]) expect(made.price(name)).toEqual({ input: 0, output: 0 });
});

test("an answer is read in the turns of the workspace for which its model was opened", async () => {
  const { made } = await open(() => OPEN_POLICY);
  const { fetch } = globalThis;
  const seen: number[] = [];
  const watched = (...given: Parameters<typeof fetch>) => {
    // Other files' servers may still be sending something.
    if (String(given[0]).startsWith(upstream.url)) seen.push(callingWorkspace());
    return fetch(...given);
  };
  globalThis.fetch = Object.assign(watched, { preconnect: fetch.preconnect });
  try {
    const models = [7, 8].flatMap((workspaceId) => made.open(() => OPEN_POLICY, 1, workspaceId).slice(0, 1));
    const answers = await Promise.all(models.map(({ model }) => model.doStream(ASK)));
    await Promise.all(answers.map(({ stream }) => stream.cancel()));
  } finally {
    globalThis.fetch = fetch;
  }
  expect(seen.sort()).toEqual([7, 8]);
  expect(callingWorkspace()).toBe(0);
});
