import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const URL = "http://127.0.0.1:9/v1";
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    yaml: `
providers:
  acme: { kind: openai-compatible, base_url: "${URL}", api_key: "sk-very-secret" }
models:
  acme/large: { input: 0.5, output: 1.25 }
tiers:
  3: { name: best, models: [acme/large] }
  1: { name: economy, models: [builtin/extractive] }
  2: { name: standard, models: [acme/large, builtin/extractive] }
`,
  });
});
afterAll(() => gateway.stop());

type Named = { name: string; tier: number; allowed: boolean; models: Named[] };

test("models are listed by name, with their tiers and prices, and no secret of their provider", async () => {
  const { status, body } = await gateway.call("GET", "/v1/models");
  expect(status).toBe(200);
  const models = body.data.filter((each: Named) => !each.name.startsWith("tier:"));
  expect({ ...body, data: models }).toMatchObject({
    data: [
      {
        name: "acme/large",
        provider: "acme",
        tiers: [2, 3],
        price: { input: 0.5, output: 1.25 },
        price_origin: "config",
        allowed: true,
      },
      {
        name: "builtin/extractive",
        provider: "builtin",
        tiers: [1, 2],
        price: { input: 0, output: 0 },
        price_origin: "builtin",
        allowed: true,
      },
    ],
    next_cursor: null,
  });
  const all = JSON.stringify([body, (await gateway.call("GET", "/v1/tiers")).body]);
  expect(all).not.toContain("sk-very-secret");
  expect(all).not.toContain(URL);
});

test("tiers are listed lowest first, each with its route in order", async () => {
  const { body } = await gateway.call("GET", "/v1/tiers");
  const shown = body.data.map((each: Named) => [
    each.tier,
    each.name,
    each.models.map((model) => model.name),
  ]);
  expect(shown).toEqual([
    [1, "economy", ["builtin/extractive"]],
    [2, "standard", ["acme/large", "builtin/extractive"]],
    [3, "best", ["acme/large"]],
  ]);
});

describe("an agent's token is shown what its policy allows", () => {
  const cases: readonly [name: string, policy: object, tiers: number[], models: string[]][] = [
    ["nothing", { tiers: [] }, [], []],
    ["a tier", { tiers: [1] }, [1], ["builtin/extractive"]],
    ["a tier without its models", { tiers: [3], models: { deny: ["acme/*"] } }, [], []],
    ["models of one provider", { models: { allow: ["acme/*"] } }, [2, 3], ["acme/large"]],
    ["what is allowed and denied", { models: { allow: ["acme/large"], deny: ["*/large"] } }, [], []],
    ["everything", {}, [1, 2, 3], ["acme/large", "builtin/extractive"]],
  ];
  test.each(cases)("%s", async (name, tier_policy, tiers, models) => {
    const agent = name.replaceAll(" ", "-");
    await gateway.agent(agent, { tier_policy });
    const token = await gateway.token({ agent, scopes: ["agents:read", "tasks:write"] });
    const allowed = async (path: string) =>
      (await gateway.call("GET", path, { token })).body.data.filter((each: Named) => each.allowed);
    expect((await allowed("/v1/tiers")).map((each: Named) => each.tier)).toEqual(tiers);
    expect((await allowed("/v1/models")).map((each: Named) => each.name)).toEqual([
      ...models,
      ...tiers.map((tier) => `tier:${tier}`),
    ]);
    // A dispatch follows the list.
    for (const tier of [1, 2, 3]) {
      const answer = await gateway.call("POST", "/v1/tasks", { token, body: { agent, prompt: "x", tier } });
      expect([tier, answer.status]).toEqual([tier, tiers.includes(tier) ? 202 : 403]);
    }
  });
});
