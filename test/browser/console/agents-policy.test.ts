/**
 * What the console shows of a policy matches what the server does: the matrix and the list of tools are compared with
 * REST.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { modelsOf, routeOf, verdictOn } from "../../../src/console/pages/agents/policy.ts";
import { accessTo, unmatched } from "../../../src/console/pages/agents/tool-access.ts";
import type { Agent, Connector, Tier } from "../../../src/http/api.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";

setDefaultTimeout(60_000);
const YAML = `
providers:
  up: { kind: openai-compatible, base_url: "http://127.0.0.1:9/v1" }
  other: { kind: openai-compatible, base_url: "http://127.0.0.1:9/v1" }
tiers:
  1: { models: [up/small, up/spare] }
  2: { models: [up/large, up/small, other/small] }
  7: { models: [other/large-2026, up/spare] }
`;
const SPEC = {
  openapi: "3.1.0",
  info: { title: "Tickets", version: "1" },
  paths: {
    "/tickets": { get: { operationId: "list_tickets", responses: { 200: { description: "ok" } } } },
    "/tickets/{id}": {
      delete: {
        operationId: "delete_ticket",
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
        responses: { 204: { description: "gone" } },
      },
    },
  },
};

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ yaml: YAML });
  const body = { name: "tickets", kind: "openapi", spec: SPEC, base_url: "https://tickets.example.org" };
  const { status } = await gateway.call("POST", "/v1/connectors", { body });
  expect(status).toBe(201);
});
afterAll(() => gateway.stop());

/** Creates an agent with these fields and returns REST's answers to a token that acts as it. */
async function actAs(name: string, fields: object) {
  await gateway.agent(name, fields);
  const token = await gateway.token({ agent: name, scopes: ["agents:read", "connectors:read", "tools:*"] });
  const read = async (path: string) => (await gateway.call("GET", path, { token })).body;
  return {
    agent: (await read(`/v1/agents/${name}`)) as Agent,
    tiers: (await read("/v1/tiers")).data as Tier[],
    connectors: (await read("/v1/connectors")).data as Connector[],
  };
}

const POLICIES: readonly (readonly [string, object])[] = [
  ["open", {}],
  ["no-tier", { tiers: [] }],
  ["one-tier", { tiers: [2] }],
  ["unconfigured", { tiers: [1, 4] }],
  ["no-model", { models: { allow: [] } }],
  ["one-provider", { models: { allow: ["other/*"] } }],
  ["denied-wins", { models: { allow: ["up/small", "*"], deny: ["up/*"] } }],
  ["inside", { tiers: [1, 7], models: { allow: ["*/*a*"], deny: ["*2026"] } }],
  ["exact", { models: { allow: ["up/spare", "UP/*"], deny: ["up/spar"] } }],
  ["any-case", { models: { deny: ["UP/SPARE"] } }],
  ["one-character", { models: { deny: ["up/s????"] } }],
  ["own-name", { models: { deny: ["sp*"] } }],
];

test.each(POLICIES)("the matrix and the server agree on the policy %s", async (name, tier_policy) => {
  const { agent, tiers } = await actAs(name, { tier_policy });
  const policy = { tiers: agent.tier_policy.tiers, ...agent.tier_policy.models };
  expect(tiers.map(({ tier }) => tier)).toEqual([1, 2, 7]);
  for (const tier of tiers) {
    const said = tier.models.map((model) => verdictOn(policy, tier, model.name).kind === "allowed");
    expect(said).toEqual(tier.models.map(({ allowed }) => allowed));
    expect(routeOf(policy, tier).length > 0).toBe(tier.allowed);
    const elsewhere = modelsOf(tiers).filter((model) => !tier.models.some(({ name }) => name === model));
    for (const model of elsewhere) expect(verdictOn(policy, tier, model)).toEqual({ kind: "absent" });
  }
});

test("the matrix explains why a model is excluded, and its position in the route", async () => {
  const { tiers } = await actAs("why", {});
  const [first, second] = tiers;
  if (!first || !second) throw new Error("the tiers are missing");
  const policy = { tiers: [2], allow: ["up/*"], deny: ["none/*", "*/large"] };
  expect(verdictOn(policy, first, "up/spare")).toEqual({ kind: "tier", place: 2 });
  expect(verdictOn(policy, second, "up/large")).toEqual({ kind: "pattern", place: 1, pattern: "*/large" });
  expect(verdictOn(policy, second, "other/small")).toEqual({ kind: "pattern", place: 3, pattern: null });
  expect(verdictOn(policy, second, "up/small")).toEqual({ kind: "allowed", place: 2 });
});

const TOOLS: readonly (readonly [string, { tools: string[]; approvals: string[] | null }])[] = [
  ["t-all", { tools: ["*"], approvals: null }],
  ["t-none", { tools: [], approvals: null }],
  ["t-some", { tools: ["vault.*", "tickets.delete_*"], approvals: null }],
  ["t-asked", { tools: ["*"], approvals: ["vault.write", "tickets.*"] }],
  ["t-never", { tools: ["tickets.*"], approvals: [] }],
];

test.each(TOOLS)("the list of tools and the server agree on the globs of %s", async (name, globs) => {
  const all = (await gateway.call("GET", "/v1/connectors")).body.data as Connector[];
  const { connectors } = await actAs(name, globs);
  const said = accessTo(
    all.flatMap(({ tools }) => tools),
    globs,
  );
  expect(said.filter(({ isDestructive }) => isDestructive).map((tool) => tool.name)).toEqual([
    "tickets.delete_ticket",
  ]);
  expect(
    said.filter(({ isAllowed }) => isAllowed).map((tool) => [tool.name, tool.needsApproval] as const),
  ).toEqual(
    connectors
      .flatMap(({ tools }) => tools)
      .map((tool) => [tool.name, tool.approval] as const)
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
});

test("patterns without a match are named", () => {
  expect(unmatched(["vault.*", "valt.*", "*"], ["vault.read"])).toEqual(["valt.*"]);
});
