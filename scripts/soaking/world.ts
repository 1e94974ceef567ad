import type { Document } from "./actors/archiving.ts";
import type { Decided } from "./actors/deciding.ts";
import type { OwnCall } from "./actors/mcp-client.ts";
import { type Allowance, FIRST_ALLOWANCE, THRIFTY } from "./actors/paying.ts";
import { STOPPED_AGENT } from "./actors/stopping.ts";
import type { Faults } from "./faults.ts";
import type { Answer, CallOptions, Life } from "./life.ts";
import { promptOf } from "./plan.ts";
import type { AskedTask } from "./task.ts";
import type { Upstreams } from "./upstreams.ts";

/** The plan of the tasks that the schedule dispatches. */
export const SCHEDULED = { key: "scheduled", steps: [] };

/** Everything that the server's users know about it. */
export interface World {
  readonly random: () => number;
  readonly faults: Faults;
  readonly upstreams: Upstreams;
  readonly asked: AskedTask[];
  readonly ownCalls: OwnCall[];
  readonly documents: Document[];
  /** Decisions by the call's id. */
  readonly decided: Map<string, Decided>;
  /** Allowances of the agent `thrifty`, in the order of the requests. */
  readonly allowances: Allowance[];
  /** Stops of the whole workspace. `mayHold` stays true until a resume has been answered. */
  readonly stops: { asked: number; mayHold: boolean };
  /** The id of the schedule that dispatches a task every minute. */
  readonly schedule: string;
  /** Secrets of two people's tokens. */
  readonly people: readonly string[];
  /** Secrets of tokens that act as an agent, for MCP clients. */
  readonly clients: readonly string[];
  /** Tracks work that ends with the present life, which then waits for it. */
  inLife(work: Promise<void>): void;
}

/** What each call of the MCP server's tools costs, in micro-credits. */
export const TOOL_PRICE = 10_000;
const PRICED_TOOLS = "up.*";
/** More than all tasks of the longest soak cost, so that everything is reserved and nothing is refused. */
const CREDITS_PER_MONTH = 100_000_000;
const MICROS = 1_000_000;

export const settings = ({ model }: Upstreams, checkpoints: string): string =>
  // JSON is YAML.
  JSON.stringify({
    providers: { fake: { kind: "openai-compatible", base_url: model.url } },
    models: {
      "fake/steady": { input: 0.01, output: 0.01 },
      "fake/flaky": { input: 0.003, output: 0.007 },
    },
    tiers: {
      1: { models: ["fake/steady"] },
      2: { models: ["fake/flaky", "fake/steady"] },
      3: { models: ["fake/broken"] },
    },
    tools: { [PRICED_TOOLS]: TOOL_PRICE / MICROS },
    // Some steps have time to end, and others are broken off.
    drain_seconds: 1,
    limits: { requests_per_minute: 1_000_000 },
    ledger: { checkpoint_file: checkpoints, checkpoint_seconds: 1 },
  });

/** Creates agents, connectors, people, clients and the schedule before the first kill. */
export async function furnish(
  life: Life,
  { mcp, api }: Upstreams,
): Promise<Pick<World, "people" | "clients" | "allowances" | "schedule">> {
  const must = async (path: string, body: CallOptions["body"]): Promise<Answer> => {
    const answer = await life.call("POST", path, body === undefined ? {} : { body });
    if (answer?.status === 201) return answer;
    throw new Error(`POST ${path}: ${answer?.status} ${answer?.text}`);
  };
  const token = async (body: object) => ((await must("/v1/tokens", body)).body as { secret: string }).secret;
  const budget = { credits_per_month: CREDITS_PER_MONTH };
  const changed = await life.call("PATCH", "/v1/workspace", { body: { budget } });
  if (changed?.status !== 200) throw new Error(`PATCH /v1/workspace: ${changed?.status} ${changed?.text}`);
  await must("/v1/connectors", { name: "up", kind: "mcp", transport: { type: "http", url: mcp.url } });
  await must("/v1/connectors", { name: "api", kind: "openapi", spec: api.spec, base_url: api.url });
  for (const [name, fields] of Object.entries({
    helper: { approvals: [] },
    other: { approvals: [] },
    [STOPPED_AGENT]: { approvals: [] },
    careful: { approvals: ["up.send"] },
    double: { approvals: ["up.send"], approvals_required: 2 },
    [THRIFTY]: { approvals: [], budget: { credits_per_day: FIRST_ALLOWANCE / MICROS } },
  })) {
    await must("/v1/agents", { name, owner: "soak", memory_scope: "/", ...fields });
  }
  const schedule = await must("/v1/schedules", {
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
  const clients = [];
  for (const agent of ["helper", "careful", THRIFTY]) clients.push(await token({ name: agent, agent }));
  return {
    ...{ people, clients, schedule: (schedule.body as { id: string }).id },
    allowances: [{ micros: FIRST_ALLOWANCE, askedAt: 0, answeredAt: 0 }],
  };
}
