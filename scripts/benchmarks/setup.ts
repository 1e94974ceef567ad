/** The configuration of the measured gateways. */
import Type from "typebox";
import { validator } from "../../src/base/schema.ts";
import type { Gatehouse } from "./processes/gatehouse.ts";
import { MODELS } from "./servers/script.ts";

export const AGENT = "bench";
export const PROMPT =
  "Summarise the complaint of the customer in three sentences, and say which of our terms it touches.";

export interface Settings {
  /** The fake upstream's port. If omitted, every tier is `builtin/extractive`. */
  readonly upstream?: number;
  /** Default: Gatehouse's own. */
  readonly runningTasks?: number;
}

/** One tier for each model of the fake upstream. */
export const TIER = {
  plain: 1,
  paced: 2,
  burst: 3,
  hang: 4,
  long: 5,
  steady: 6,
  passed: 7,
  apart: 8,
  short: 9,
  late: 10,
} as const;

/**
 * Default settings, except for the limits: these are set to their maximum, so that they apply to every call and
 * refuse none.
 */
export function settings({ upstream, runningTasks }: Settings = {}): string {
  const limits = {
    requests_per_minute: 1_000_000,
    concurrent_tasks: 100_000,
    queued_tasks: 10_000_000,
    ...(runningTasks === undefined ? {} : { running_tasks_per_node: runningTasks }),
  };
  const url = `http://127.0.0.1:${upstream}/v1`;
  const provider = { kind: "openai-compatible", base_url: url, timeout_ms: 3_600_000 };
  const tiers = Object.fromEntries(
    Object.entries(TIER).map(([model, tier]) => [tier, { models: [`fake/${model}`] }]),
  );
  const models =
    upstream === undefined
      ? { tiers: { 1: { models: ["builtin/extractive"] } } }
      : { providers: { fake: provider }, tiers };
  // JSON is YAML. A drain of 0 seconds, because a stop must not wait for a model that hangs.
  return JSON.stringify({ limits, drain_seconds: 0, ...models });
}

/** The body of the request that creates the agent. */
export const AGENT_REQUEST = {
  name: AGENT,
  owner: "benchmarks@gatehouse.example",
  memory_scope: ["support", "legal/contracts"],
  description: "Answers the questions that the benchmarks ask.",
};

const object = validator(Type.Object({}));

/** @returns the agent as Gatehouse shows it */
export async function createAgent(gatehouse: Gatehouse): Promise<object> {
  await gatehouse.call(201, "POST", "/v1/agents", AGENT_REQUEST);
  return object.parse(await gatehouse.call(200, "GET", `/v1/agents/${AGENT}`));
}

const openapi = validator(
  Type.Object({
    paths: Type.Object({
      "/v1/tasks": Type.Object({
        post: Type.Object({
          requestBody: Type.Object({
            content: Type.Object({ "application/json": Type.Object({ schema: Type.Object({}) }) }),
          }),
        }),
      }),
    }),
  }),
);

/** The schema of a task's request, as the running server documents it. */
export async function taskSchema(gatehouse: Gatehouse): Promise<object> {
  const { paths } = openapi.parse(await gatehouse.call(200, "GET", "/openapi.json"));
  return paths["/v1/tasks"].post.requestBody.content["application/json"].schema;
}

const accepted = validator(Type.Object({ id: Type.String(), status: Type.String() }));

/**
 * Dispatches a task of this tier.
 * @returns the answer
 */
export async function dispatch(gatehouse: Gatehouse, tier: number): Promise<{ id: string; status: string }> {
  return accepted.parse(await gatehouse.call(202, "POST", "/v1/tasks", taskRequest(tier)));
}

export function taskRequest(tier: number): object {
  return {
    agent: AGENT,
    prompt: PROMPT,
    tier,
    metadata: { case: "2026-0117", team: "support" },
  };
}

/** The body of the call that Gatehouse makes to the upstream for such a task. */
export function upstreamRequest(model: keyof typeof MODELS): object {
  return {
    model: MODELS[model],
    messages: [{ role: "user", content: PROMPT }],
    stream: true,
    stream_options: { include_usage: true },
  };
}
