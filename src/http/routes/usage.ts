import { Elysia } from "elysia";
import Type from "typebox";
import type { Caller } from "../../access/caller.ts";
import { type Clock, timestamp } from "../../base/clock.ts";
import { toCredits } from "../../base/credits.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import type { UsageFacts } from "../../gate/usage/facts.ts";
import { percentile } from "../../gate/usage/latency.ts";
import { slotOf, type UsageKind } from "../../gate/usage/record.ts";
import type { Breakdown, UsageReport, UsageReports } from "../../gate/usage/report.ts";
import { oldestKept, USAGE_STEPS, type UsageStep } from "../../gate/usage/slots.ts";
import type { Db } from "../../store/db.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { instant } from "../time.ts";

const DAY_MS = 86_400_000;
/** Maximum number of slots in a response. */
const SLOT_LIMIT = 1_000;
const BREAKDOWNS = ["agent", "model", "tool", "none"] as const;

const time = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 40, description }));
export const UsageQuery = Type.Object(
  {
    from: time("RFC 3339, rounded down to a whole step. Default: 24 hours before `to`."),
    to: time("RFC 3339, rounded up to a whole step. Default: now."),
    step: Type.Optional(
      Type.Enum(["5m", "1h", "1d"], {
        description:
          "The length of a time slot; days are in UTC. Default: `1h`. `5m` is kept for 48 hours, others for 400 days.",
      }),
    ),
    by: Type.Optional(
      Type.Enum([...BREAKDOWNS], {
        description: "Which breakdown of credits to return. Default: all.",
      }),
    ),
    agent: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 63,
        description: "Only the usage of this agent. Default: everyone.",
      }),
    ),
  },
  { additionalProperties: false },
);

export interface UsageRouteParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly reports: UsageReports;
}

export function usageRoutes(endpoints: EndpointContext, { db, clock, reports }: UsageRouteParts) {
  const read = endpoint(
    endpoints,
    {
      action: "usage.read",
      scope: "ledger:read",
      summary:
        "Read usage over time: tasks, calls, errors, credits, tokens and latency, ready for charts. Percentiles are " +
        "interpolated within latency buckets",
      tag: "Usage",
      query: UsageQuery,
      status: 200,
    },
    async ({ call, query }) => {
      const step = query.step ?? "1h";
      const range = rangeOf(query.from, query.to, step, clock.now());
      const { workspaceId } = call.caller;
      const agent = query.agent ?? call.caller.agent?.name ?? null;
      call.about({ detail: { step, from: timestamp(range.from), to: timestamp(range.to) } });
      const agentIds = await agentIdsOf(db, call.caller, query.agent);
      if (agent !== null) call.about({ agent });
      const { width } = USAGE_STEPS[step];
      const report = await reports({ workspaceId, agentIds, ...range, width });
      return { status: 200, body: viewUsage(report, { ...range, step, agent, by: query.by ?? null }) };
    },
  );

  return new Elysia({ prefix: "/v1/usage" }).get("", read.handle, read.hook);
}

/**
 * The whole slots that cover the requested time.
 * @throws Problem 422 that names the field
 */
function rangeOf(
  givenFrom: string | undefined,
  givenTo: string | undefined,
  step: UsageStep,
  now: number,
): { readonly from: number; readonly to: number } {
  const { width, kept } = USAGE_STEPS[step];
  const end = givenTo === undefined ? now : instant("/to", givenTo);
  const start = givenFrom === undefined ? end - DAY_MS : instant("/from", givenFrom);
  if (start >= end) throw invalidField("/from", "must be before `to`");
  const from = slotOf(start, width);
  const to = slotOf(end - 1, width) + width;
  const count = (to - from) / width;
  if (count > SLOT_LIMIT) {
    throw invalidField(
      "/from",
      `is ${count} steps of ${step} before \`to\`: at most ${SLOT_LIMIT} are allowed`,
    );
  }
  const oldest = oldestKept(step, now);
  if (from < oldest) {
    const since = `steps of ${step} are kept for ${kept / 3_600_000} hours, from ${timestamp(oldest)} on`;
    throw invalidField("/from", since);
  }
  return { from, to };
}

/**
 * The ids of the requested agents that the caller may see; null for everyone. A reused name means all agents that
 * have had it, except for a token acting as one of them.
 * @throws Problem 403 `agent_forbidden`, 404 `agent_not_found`
 */
async function agentIdsOf(
  db: Db,
  { workspaceId, agent }: Caller,
  name: string | undefined,
): Promise<readonly number[] | null> {
  if (agent) {
    if (name !== undefined && name !== agent.name) {
      throw new Problem(
        "agent_forbidden",
        `This token acts as ${agent.name} and can only see its own usage.`,
      );
    }
    return [agent.id];
  }
  if (name === undefined) return null;
  const rows = await db.all<{ id: number }>("SELECT id FROM agents WHERE workspace_id = $1 AND name = $2", [
    workspaceId,
    name,
  ]);
  if (rows.length === 0) throw new Problem("agent_not_found", `There is no agent ${JSON.stringify(name)}.`);
  return rows.map(({ id }) => id);
}

interface UsageQuery {
  readonly from: number;
  readonly to: number;
  readonly step: UsageStep;
  readonly agent: string | null;
  readonly by: (typeof BREAKDOWNS)[number] | null;
}

/** Every list has a value for each of `slots`. */
export function viewUsage({ starts, slots, total, ...found }: UsageReport, asked: UsageQuery) {
  const { from, to, step, agent, by } = asked;
  const breakdown = (kind: UsageQuery["by"], of: Breakdown) =>
    by === null || by === kind ? viewBreakdown(of) : null;
  const each = slots.map(viewFacts);
  return {
    from: timestamp(from),
    to: timestamp(to),
    step,
    step_seconds: USAGE_STEPS[step].width / 1_000,
    agent,
    /** The start of each slot. */
    slots: starts.map((start) => timestamp(start)),
    tasks: {
      succeeded: each.map(({ tasks }) => tasks.succeeded),
      failed: each.map(({ tasks }) => tasks.failed),
      cancelled: each.map(({ tasks }) => tasks.cancelled),
    },
    models: {
      calls: each.map(({ models }) => models.calls),
      failed: each.map(({ models }) => models.failed),
      cancelled: each.map(({ models }) => models.cancelled),
    },
    /** The share of `models`, `credits` and `tokens` from clients' own calls outside of tasks. */
    client_calls: {
      calls: each.map(({ client_calls: clients }) => clients.calls),
      failed: each.map(({ client_calls: clients }) => clients.failed),
      cancelled: each.map(({ client_calls: clients }) => clients.cancelled),
      credits: each.map(({ client_calls: clients }) => clients.credits),
      input_tokens: each.map(({ client_calls: clients }) => clients.input_tokens),
      output_tokens: each.map(({ client_calls: clients }) => clients.output_tokens),
    },
    /** Clients' requests to providers to count tokens. They are free, and not part of `models`. */
    token_counts: {
      requests: each.map(({ token_counts: counts }) => counts.requests),
      failed: each.map(({ token_counts: counts }) => counts.failed),
      cancelled: each.map(({ token_counts: counts }) => counts.cancelled),
    },
    tools: {
      calls: each.map(({ tools }) => tools.calls),
      failed: each.map(({ tools }) => tools.failed),
      denied: each.map(({ tools }) => tools.denied),
      unknown: each.map(({ tools }) => tools.unknown),
    },
    credits: {
      total: each.map(({ credits }) => credits),
      by_agent: breakdown("agent", found.byAgent),
      by_model: breakdown("model", found.byModel),
      by_tool: breakdown("tool", found.byTool),
    },
    tokens: {
      input: each.map(({ tokens }) => tokens.input),
      output: each.map(({ tokens }) => tokens.output),
    },
    latency_ms: {
      task: percentiles(slots, "task"),
      model: percentiles(slots, "model"),
      tool: percentiles(slots, "tool"),
      /** For clients' model calls: the time to the first part of the answer. */
      first_token: percentiles(slots, "client"),
    },
    totals: {
      ...viewFacts(total),
      latency_ms: {
        task: percentilesOf(total, "task"),
        model: percentilesOf(total, "model"),
        tool: percentilesOf(total, "tool"),
        first_token: percentilesOf(total, "client"),
      },
    },
  };
}

function viewFacts({ outcomes, credits, inputTokens, outputTokens, clients }: UsageFacts) {
  const count = (outcome: string) => outcomes.get(outcome) ?? 0;
  const models = { failed: count("model.failed"), cancelled: count("model.cancelled") };
  const called = { failed: count("client.failed"), cancelled: count("client.cancelled") };
  const counted = { failed: count("count.failed"), cancelled: count("count.cancelled") };
  const tools = {
    failed: count("tool.failed"),
    denied: count("tool.denied"),
    unknown: count("tool.unknown"),
  };
  return {
    tasks: {
      succeeded: count("task.succeeded"),
      failed: count("task.failed"),
      cancelled: count("task.cancelled"),
    },
    models: { calls: count("model.succeeded") + models.failed + models.cancelled, ...models },
    client_calls: {
      calls: count("client.succeeded") + called.failed + called.cancelled,
      ...called,
      credits: toCredits(clients.credits),
      input_tokens: clients.inputTokens,
      output_tokens: clients.outputTokens,
    },
    token_counts: {
      requests: count("count.succeeded") + counted.failed + counted.cancelled,
      ...counted,
    },
    tools: { calls: count("tool.succeeded") + tools.failed + tools.denied + tools.unknown, ...tools },
    credits: toCredits(credits),
    tokens: { input: inputTokens, output: outputTokens },
  };
}

/** The costliest items, highest first, and the total of all others. */
function viewBreakdown({ top, other }: Breakdown) {
  const series = (micros: readonly number[]) => ({
    credits: toCredits(micros.reduce((all, each) => all + each, 0)),
    values: micros.map(toCredits),
  });
  return {
    top: top.map(({ name, micros }) => ({ name, ...series(micros) })),
    other: other === null ? null : series(other),
  };
}

/** Milliseconds; null if nothing was measured. */
function percentilesOf({ latency }: UsageFacts, kind: UsageKind) {
  const at = (percent: number) => {
    const ms = percentile(latency[kind], percent);
    return ms === null ? null : Math.round(ms * 10) / 10;
  };
  return { p50: at(50), p95: at(95), p99: at(99) };
}

function percentiles(slots: readonly UsageFacts[], kind: UsageKind) {
  const each = slots.map((facts) => percentilesOf(facts, kind));
  return {
    p50: each.map(({ p50 }) => p50),
    p95: each.map(({ p95 }) => p95),
    p99: each.map(({ p99 }) => p99),
  };
}
