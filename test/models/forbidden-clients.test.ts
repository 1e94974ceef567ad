/** A model that a policy forbids is never seen by its provider, however a client requests it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { allowsModel, allowsTier, type TierPolicy } from "../../src/access/tier-policy.ts";
import { message, textEvents } from "../dialects/messages-support.ts";
import { startFakeGoogle } from "../support/fake-google.ts";
import { startFakeMessages } from "../support/fake-messages.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const NAMES = ["a", "ab", "c"] as const;
/** Only the models of `up` are native for chat completions. */
const TIERS: Readonly<Record<number, readonly string[]>> = {
  1: ["up/a", "gem/a", "cla/a"],
  2: ["gem/ab", "up/ab", "cla/ab"],
  3: ["cla/c", "gem/a", "gone/x"],
};
const ALIASES: Readonly<Record<string, string>> = {
  best: "tier:2",
  cheap: "gem/c",
  "any-*": "cla/*",
  "other-*": "gem/models/*",
};
/** The names that clients request, with the models or the tier that each leads to. */
const ASKED: Readonly<Record<string, number | string | null>> = {
  "tier:1": 1,
  large: 2,
  "tier:3": 3,
  best: 2,
  cheap: "gem/c",
  "any-a": "cla/a",
  "any-never": "cla/never",
  "up/a": "up/a",
  "gem/a": "gem/a",
  "gem/ab": "gem/ab",
  "cla/ab": "cla/ab",
  "gem/unlisted": "gem/unlisted",
  "cla/unlisted": "cla/unlisted",
  "gem/models/a": null,
  "gem/Models/ab": null,
  "gem/a:x": null,
  "other-a": null,
};

const upstream = startFakeModel();
const google = startFakeGoogle("key");
const anthropic = startFakeMessages("key");
/** The paths requested from Amazon. */
const amazonPaths: string[] = [];
const amazon = Bun.serve({
  ...{ hostname: "127.0.0.1", port: 0 },
  fetch(request) {
    amazonPaths.push(decodeURIComponent(new URL(request.url).pathname));
    const content = [{ text: "ok" }];
    const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
    return Response.json({
      output: { message: { role: "assistant", content } },
      stopReason: "end_turn",
      usage,
    });
  },
});
let gateway: TestGateway;

beforeAll(async () => {
  const tier = (number: number, name: string) =>
    `  ${number}: { name: ${name}, models: [${TIERS[number]?.join(", ")}] }\n`;
  const aliases = Object.entries(ALIASES).map(([alias, target]) => `  "${alias}": "${target}"\n`);
  gateway = await startGateway({
    yaml: `providers:
  up: { kind: openai-compatible, base_url: ${upstream.url} }
  gem: { kind: google, base_url: ${google.url}, api_key: key }
  cla: { kind: anthropic, base_url: ${anthropic.url}, api_key: key }
  gone: { kind: google, base_url: "http://127.0.0.1:1/v1beta", api_key: key }
  aws: { kind: bedrock, region: eu-central-1, base_url: "${amazon.url.origin}", api_key: key }
tiers:
${tier(1, "small")}${tier(2, "large")}${tier(3, "odd")}  4: { name: amazon, models: [aws/us.meta.llama-9] }
aliases:
${aliases.join("")}`,
  });
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([upstream.close(), google.close(), anthropic.close(), amazon.stop(true)]);
});

/** Everything that was requested from providers, as `<provider>/<model>`. */
function seen(): string[] {
  return [
    ...upstream.requests.map(({ model }) => `up/${model}`),
    ...google.requests.map(({ model }) => `gem/${model}`),
    ...anthropic.requests.map(({ model }) => `cla/${model}`),
  ];
}

function script(kinds: Readonly<Record<string, string>>, isStream: boolean): void {
  for (const name of [...NAMES, "never", "unlisted"]) {
    const status = (provider: string) => {
      const kind = kinds[provider] ?? "ok";
      return kind === "ok" ? {} : { status: Number(kind) };
    };
    upstream.script(name, { chunks: ["ok"], ...status("up") });
    google.script(name, { parts: [{ text: "ok" }], ...status("gem") });
    const content = [{ type: "text", text: "ok" }];
    const usage = { input_tokens: 1, output_tokens: 1 };
    const answer = isStream ? { events: textEvents(["ok"], 1, 1) } : { message: message(content, usage) };
    anthropic.script(name, { ...answer, ...status("cla") });
  }
}

function isAllowed({ tiers, models }: TierPolicy, id: string, target: number | string | null): boolean {
  const policy = { tiers, models };
  if (target === null || !allowsModel(policy, id)) return false;
  if (typeof target === "number") {
    return allowsTier(policy, target) && TIERS[target]?.includes(id) === true;
  }
  const carriers = Object.entries(TIERS).filter(([, listed]) => listed.includes(id));
  const isInAllowed = carriers.some(([tier]) => allowsTier(policy, Number(tier)));
  return id === target && (carriers.length === 0 || isInAllowed);
}

const pattern = fc.constantFrom("*", "up/*", "gem/*", "cla/*", "gem/a", "*/ab", "gem/a*", "*c*", "none");
const policies = fc.record({
  tiers: fc.option(fc.uniqueArray(fc.constantFrom(1, 2, 3)), { nil: null }),
  models: fc.record({
    allow: fc.oneof({ weight: 3, arbitrary: fc.constant(["*"]) }, fc.array(pattern, { maxLength: 2 })),
    deny: fc.array(pattern, { maxLength: 1 }),
  }),
});
const failing = fc.constantFrom("ok", "ok", "500", "429", "400");
const failures = fc.record({ up: failing, gem: failing, cla: failing });
const asked = fc.constantFrom(...Object.keys(ASKED));
const CHAT = "/v1/chat/completions";
const MESSAGES = "/v1/messages";
const RESPONSES = "/v1/responses";
const paths = fc.constantFrom(CHAT, CHAT, MESSAGES, RESPONSES, "/v1/embeddings");

let agents = 0;

test("across policies, aliases, tiers and fallbacks, passed through and translated", async () => {
  await fc.assert(
    fc.asyncProperty(
      policies,
      asked,
      failures,
      paths,
      fc.boolean(),
      async (policy, model, kinds, path, stream) => {
        const agent = `client-${agents++}`;
        const { tiers, models } = policy;
        await gateway.agent(agent, { tier_policy: tiers === null ? { models } : policy });
        script(kinds, stream);
        const before = seen();
        const isChat = path !== "/v1/embeddings";
        const messages = [{ role: "user", content: "hi" }];
        const bodies: Record<string, object> = { [RESPONSES]: { model, stream, input: "hi" } };
        const body =
          bodies[path] ?? (isChat ? { model, stream, max_tokens: 9, messages } : { model, input: "hi" });
        const { status, headers } = await gateway.call("POST", path, {
          ...{ body, headers: { "gatehouse-agent": agent } },
        });
        const now = seen();
        for (const id of new Set(before)) {
          for (const _ of before.filter((each) => each === id)) now.splice(now.indexOf(id), 1);
        }
        const target = ASKED[model] ?? null;
        for (const id of now)
          expect({ id, isAllowed: isAllowed(policy, id, target) }).toEqual({ id, isAllowed: true });
        if (target === null)
          expect([status, headers.get("gatehouse-code")]).toEqual([404, "model_not_found"]);
        if (status === 403) expect(now).toEqual([]);
        if (isChat && status === 200) expect(now.length).toBeGreaterThan(0);
      },
    ),
    { numRuns: 250 },
  );
}, 120_000);

test("a model of Amazon's is forbidden under each of its names, whichever region or tier has it", async () => {
  const models = { allow: ["*"], deny: ["aws/anthropic.*"] };
  await gateway.agent("european", { tier_policy: { tiers: [1], models } });
  const codeOf = async (model: string) => {
    const body = { model, messages: [{ role: "user", content: "hi" }] };
    const { status, headers } = await gateway.call("POST", CHAT, {
      ...{ body, headers: { "gatehouse-agent": "european" } },
    });
    return status === 200 ? null : headers.get("gatehouse-code");
  };
  const forbidden = ["", "us.", "eu.", "apac.", "global.", "us-gov.", "jp."].flatMap((region) => [
    `aws/${region}anthropic.claude-5-v1:0`,
    `aws/${region}meta.llama-9`,
  ]);
  for (const name of forbidden) expect([name, await codeOf(name)]).toEqual([name, "model_forbidden"]);
  expect(amazonPaths).toEqual([]);
  expect(await codeOf("aws/eu.amazon.nova-lite-v1:0")).toBeNull();
  expect(amazonPaths).toEqual(["/model/eu.amazon.nova-lite-v1:0/converse"]);
});
