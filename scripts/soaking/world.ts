import type { Document } from "./actors/archiving.ts";
import type { Decided } from "./actors/deciding.ts";
import type { OwnCall } from "./actors/mcp-client.ts";
import { STOPPED_AGENT } from "./actors/stopping.ts";
import type { Faults } from "./faults.ts";
import type { Answer, CallOptions, Life } from "./life.ts";
import { promptOf } from "./plan.ts";
import type { AskedTask } from "./task.ts";
import type { Upstreams } from "./upstreams.ts";

/** The plan of the tasks that the schedule dispatches. */
export const SCHEDULED = { key: "scheduled", steps: [] };

/** All that those who work with the server know of it. */
export interface World {
  readonly random: () => number;
  readonly faults: Faults;
  readonly upstreams: Upstreams;
  readonly asked: AskedTask[];
  readonly ownCalls: OwnCall[];
  readonly documents: Document[];
  /** By the call's id. */
  readonly decided: Map<string, Decided>;
  /** Secrets of two people's tokens. */
  readonly people: readonly string[];
  /** Secrets of tokens that act as an agent, for clients of the MCP door. */
  readonly clients: readonly string[];
  /** Work that ends with the present life, and is waited for then. */
  inLife(work: Promise<void>): void;
}

export const settings = ({ model }: Upstreams, checkpoints: string): string =>
  // JSON is YAML.
  JSON.stringify({
    providers: { fake: { kind: "openai-compatible", base_url: model.url } },
    models: {
      "fake/steady": { input: 1, output: 1 },
      "fake/flaky": { input: 0.3, output: 0.7 },
    },
    tiers: {
      1: { models: ["fake/steady"] },
      2: { models: ["fake/flaky", "fake/steady"] },
      3: { models: ["fake/broken"] },
    },
    limits: { requests_per_minute: 1_000_000 },
    ledger: { checkpoint_file: checkpoints, checkpoint_seconds: 1 },
  });

/** Agents, connectors, people, clients and the schedule, before anything is killed. */
export async function furnish(
  life: Life,
  { mcp, api }: Upstreams,
): Promise<Pick<World, "people" | "clients">> {
  const must = async (path: string, body: CallOptions["body"]): Promise<Answer> => {
    const answer = await life.call("POST", path, body === undefined ? {} : { body });
    if (answer?.status === 201) return answer;
    throw new Error(`POST ${path}: ${answer?.status} ${answer?.text}`);
  };
  const token = async (body: object) => ((await must("/v1/tokens", body)).body as { secret: string }).secret;
  await must("/v1/connectors", { name: "up", kind: "mcp", transport: { type: "http", url: mcp.url } });
  await must("/v1/connectors", { name: "api", kind: "openapi", spec: api.spec, base_url: api.url });
  for (const [name, fields] of Object.entries({
    helper: { approvals: [] },
    other: { approvals: [] },
    [STOPPED_AGENT]: { approvals: [] },
    careful: { approvals: ["up.send"] },
    double: { approvals: ["up.send"], approvals_required: 2 },
  })) {
    await must("/v1/agents", { name, owner: "soak", memory_scope: "/", ...fields });
  }
  await must("/v1/schedules", {
    name: "every minute",
    agent: "helper",
    prompt: promptOf(SCHEDULED),
    cron: "* * * * *",
    missed: "once",
  });
  const people = [];
  for (const person of ["Ann", "Bo"]) {
    people.push(await token({ name: person, person, scopes: ["approvals:write"] }));
  }
  return {
    people,
    clients: [await token({ name: "c", agent: "helper" }), await token({ name: "d", agent: "careful" })],
  };
}
