import type { Agent, Connector, FeedEvents, LedgerEntry, Workspace } from "../../../http/api.ts";
import { countText, creditsText, plural } from "../../parts/text.tsx";
import { explained } from "./task-errors.ts";

/** Something that needs a person's attention. */
export interface Matter {
  readonly key: string;
  readonly tone: "warn" | "bad";
  /** One word, for the badge. */
  readonly kind: string;
  readonly title: string;
  /** What it means, or what to do. */
  readonly text: string;
  /** When it began or last occurred; RFC 3339. */
  readonly at: string | null;
  /** Whether its age matters. */
  readonly isWaiting?: true;
  readonly href: string;
}

/** A failed task. */
export interface Failure {
  readonly id: string;
  readonly code: string;
  readonly finishedAt: string;
}

export const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MICROS = 1_000_000;

/** `oldest`: when the longest-waiting approval was requested; null if unknown. */
export function waitingMatters(count: number, oldest: string | null): Matter[] {
  if (count === 0) return [];
  return [
    {
      key: "approvals",
      tone: "warn",
      kind: "Waiting",
      title: `${plural(count, "call waits", "calls wait")} for a person`,
      text: "Their tasks continue after a decision, or when the time is up.",
      at: oldest,
      isWaiting: true,
      href: "/console/approvals",
    },
  ];
}

export function connectorMatters(connectors: readonly Connector[]): Matter[] {
  return connectors
    .filter(({ status }) => status === "unreachable")
    .map(({ name, error }) => ({
      key: `connector ${name}`,
      tone: "bad",
      kind: "Unreachable",
      title: `Connector ${name} cannot be reached`,
      text: error ?? "Its tools fail until it answers again.",
      at: null,
      href: `/console/connectors/${encodeURIComponent(name)}`,
    }));
}

export function stopMatters(
  workspace: FeedEvents["workspace.changed"]["status"] | null,
  agents: readonly Agent[],
): Matter[] {
  if (workspace === "stopped") {
    return [
      {
        key: "workspace stopped",
        tone: "bad",
        kind: "Stopped",
        title: "The workspace is stopped",
        text: "No agent runs, and new tasks are refused until somebody resumes it above.",
        at: null,
        href: "/console/agents",
      },
    ];
  }
  return agents
    .filter(({ status }) => status === "stopped")
    .map(({ name, updated_at }) => ({
      key: `agent ${name}`,
      tone: "warn",
      kind: "Stopped",
      title: `Agent ${name} is stopped`,
      text: "Its tasks were cancelled, and new ones are refused until it is resumed.",
      at: updated_at,
      href: `/console/agents/${encodeURIComponent(name)}`,
    }));
}

/** The earliest time of relevant entries: midnight UTC, or an hour ago if that is earlier. Changes twice a day. */
export function noticesFrom(now: number): number {
  const midnight = now - (now % DAY_MS);
  return now - midnight < HOUR_MS ? midnight - HOUR_MS : midnight;
}

/** From `limit.exceeded` entries, newest first: one matter for each limit other than budgets, in the last hour. */
export function limitMatters(entries: readonly LedgerEntry[], now: number): Matter[] {
  const byLimit = new Map<string, LedgerEntry[]>();
  for (const entry of entries) {
    const limit = detailOf(entry, "limit");
    if (limit === "credits" || Date.parse(entry.ts) < now - HOUR_MS) continue;
    byLimit.set(limit, [...(byLimit.get(limit) ?? []), entry]);
  }
  return [...byLimit].map(([limit, found]) => {
    const isEnforced = found.some(({ outcome }) => outcome === "denied");
    const minutes = found.length === 1 ? "in one minute" : `in ${countText(found.length)} minutes`;
    return {
      key: `limit ${limit}`,
      tone: isEnforced ? "bad" : "warn",
      kind: "Limit",
      title: `The limit of ${limit === "tasks" ? "concurrent tasks" : limit} was exceeded ${minutes} of the last hour`,
      text: isEnforced
        ? "Calls were refused. Raise the limit, or find out which caller makes so many."
        : "Enforcement is soft: everything was served.",
      at: found[0]?.ts ?? null,
      href: `/console/ledger?action=limit.exceeded`,
    };
  });
}

/** The workspace's monthly budget as it stands. */
export function monthMatters({ budget, usage }: Workspace): Matter[] {
  const limit = budget.credits_per_month;
  if (limit === null) return [];
  const percent = limit === 0 ? 100 : (usage.credits_this_month / limit) * 100;
  if (percent < 80) return [];
  const isSpent = percent >= 100;
  return [
    {
      key: "budget month",
      tone: isSpent ? "bad" : "warn",
      kind: "Budget",
      title: isSpent
        ? "This month's budget is spent"
        : `This month's budget is ${Math.floor(percent)}% spent`,
      text: `${creditsText(usage.credits_this_month)} of ${creditsText(limit)} credits. ${isSpent ? "Tasks that cost credits are refused." : "Raise it before tasks are refused."}`,
      at: null,
      href: "/console/settings/limits",
    },
  ];
}

/**
 * From `budget.warn` and `limit.exceeded` entries: the latest state today (UTC) of each agent whose budget has not
 * changed since.
 */
export function agentBudgetMatters(
  entries: readonly LedgerEntry[],
  agents: readonly Agent[],
  now: number,
): Matter[] {
  const midnight = now - (now % DAY_MS);
  const last = new Map<string, LedgerEntry>();
  for (const entry of entries) {
    if (detailOf(entry, "budget") !== "agent_day" || entry.agent === null) continue;
    if (Date.parse(entry.ts) < midnight) continue;
    const known = last.get(entry.agent);
    if (!known || known.seq < entry.seq) last.set(entry.agent, entry);
  }
  const matters: Matter[] = [];
  for (const [name, entry] of last) {
    const budget = agents.find((agent) => agent.name === name)?.budget.credits_per_day;
    if (budget == null || budget * MICROS !== Number(detailOf(entry, "budget_limit"))) continue;
    const isSpent = entry.action === "limit.exceeded";
    matters.push({
      key: `budget ${name}`,
      tone: isSpent ? "bad" : "warn",
      kind: "Budget",
      title: isSpent
        ? `Agent ${name} has spent today's budget`
        : `Agent ${name} has spent 80% of today's budget`,
      text: `${creditsText(budget)} credits a day, until midnight UTC. ${isSpent ? "Its tasks are refused." : ""}`.trim(),
      at: entry.ts,
      href: `/console/agents/${encodeURIComponent(name)}`,
    });
  }
  return matters;
}

/** Failures of the last hour, by error. `isCut`: there may be more. */
export function failureMatters(failures: readonly Failure[], now: number, isCut: boolean): Matter[] {
  const byCode = new Map<string, Failure[]>();
  for (const failure of failures) {
    if (Date.parse(failure.finishedAt) < now - HOUR_MS) continue;
    byCode.set(failure.code, [...(byCode.get(failure.code) ?? []), failure]);
  }
  return [...byCode].map(([code, found]) => {
    const { name, advice } = explained(code);
    const [first] = found;
    const at =
      found
        .map(({ finishedAt }) => finishedAt)
        .sort()
        .at(-1) ?? null;
    const only = found.length === 1 && !isCut ? first : undefined;
    return {
      key: `failed ${code}`,
      tone: "bad",
      kind: "Failed",
      title: `${isCut ? `${countText(found.length)} or more tasks have` : plural(found.length, "task has", "tasks have")} failed in the last hour: ${name}`,
      text: advice,
      at,
      href: only ? `/console/tasks/${only.id}` : "/console/tasks?status=failed",
    };
  });
}

/** Sorted by severity; otherwise the order is kept. */
export function inOrder(matters: readonly Matter[]): Matter[] {
  return [...matters.filter(({ tone }) => tone === "bad"), ...matters.filter(({ tone }) => tone === "warn")];
}

function detailOf({ detail }: LedgerEntry, name: string): string {
  const value: unknown = detail === null ? undefined : (detail as Readonly<Record<string, unknown>>)[name];
  return value === undefined ? "" : String(value);
}
