import type { CallsByName, CallTally } from "../figures/call-tally.ts";
import { readModelKey } from "../figures/calls.ts";
import type { Overseers } from "../figures/overseers.ts";
import type { ReportEntryFields } from "../format/entry.ts";
import { place, type ReportFacts } from "./facts.ts";
import { actorName } from "./holders.ts";
import { type Html, type HtmlPart, html, table } from "./html.ts";
import { brief, count, counted, credits, moment } from "./words.ts";

const NUMBER = { kind: "number" } as const;
const TIME = { kind: "time" } as const;
const PAST_CAP = "more";
const NOT_CALLED = "not called";

/** What agents did, the models and tools they used, and changes to their settings. */
export function operationSection(facts: ReportFacts): Html {
  const { calls, events } = facts.figures;
  const where = place(facts);
  const agents = calls.agents.sorted(({ modelCalls, toolCalls, tasks }) => modelCalls + toolCalls + tasks);
  return html`<section><h2>4. What agents did</h2>
<p>Tasks dispatched: ${count(calls.tasks.dispatched)}; ended well: ${count(calls.tasks.succeeded)}; failed: ${count(calls.tasks.failed)}; cancelled: ${count(calls.tasks.cancelled)}; refused: ${count(calls.tasks.refused)}. A call's intent is recorded before anything is sent, and what came of it before its answer is used.</p>
${table({
  caption: "Agents",
  columns: [
    { name: "Agent" },
    { name: "Tasks", ...NUMBER },
    { name: "Model calls", ...NUMBER },
    { name: "including calls by clients", ...NUMBER },
    { name: "Tool calls", ...NUMBER },
    { name: "Refused by policy", ...NUMBER },
    { name: "Decisions about it", ...NUMBER },
  ],
  rows: agents.map(([name, tally]) => [
    name,
    count(tally.tasks),
    count(tally.modelCalls),
    count(tally.clientCalls),
    count(tally.toolCalls),
    count(calls.refusedOf(name)),
    count(tally.decisions),
  ]),
  empty: `Nothing about an agent was recorded ${where}.`,
  note:
    [
      calls.agents.others === null ? "" : "Further agents are counted only in the totals.",
      calls.unknownAgents === 0
        ? ""
        : `Not listed, since nothing shows that these agents existed: ${counted(calls.unknownAgents, "name")} found only in refused or failed requests.`,
    ]
      .filter((text) => text !== "")
      .join(" ") || undefined,
})}
${table({
  caption: "Models and tiers",
  columns: [{ name: "Model" }, { name: "Tier", ...NUMBER }, ...CALL_COLUMNS, ...MODEL_COLUMNS],
  rows: withOthers(calls.models, (key, tally) => {
    const summed = { [PAST_CAP]: "further models", [NOT_CALLED]: "refused under other names" }[key];
    const { model, tier } = summed === undefined ? readModelKey(key) : { model: summed, tier: null };
    return [brief(model || "–", 60), tier ?? "–", ...callCells(tally), ...modelCells(tally)];
  }),
  empty: `No model call was recorded ${where}.`,
})}
${clientTables(facts)}
${table({
  caption: "Tools",
  columns: [{ name: "Tool" }, ...CALL_COLUMNS],
  rows: withOthers(calls.tools, (name, tally) => [
    { [PAST_CAP]: "further tools", [NOT_CALLED]: "refused under other names" }[name] ?? brief(name, 80),
    ...callCells(tally),
  ]),
  empty: `No tool call was recorded ${where}.`,
})}
${table({
  caption: "Changes to agents, connectors and settings",
  columns: [
    { name: "Entry", ...NUMBER },
    { name: "Time", ...TIME },
    { name: "Change" },
    { name: "About" },
    { name: "By" },
  ],
  rows: events.changes.items.map((entry) => changeRow(entry, facts.overseers)),
  empty: `No change to agents, connectors or settings was recorded ${where}.`,
  note: events.changes.left === 0 ? undefined : `${count(events.changes.left)} more in entries.ndjson.`,
})}
</section>`;
}

/** The APIs that clients use, as their vendors call them. */
const API_NAMES: Readonly<Record<string, string>> = {
  chat_completions: "OpenAI Chat Completions",
  responses: "OpenAI Responses",
  messages: "Anthropic Messages",
  embeddings: "OpenAI Embeddings",
};

/** Model calls that clients, such as applications, make themselves: without a task, but under the same rules. */
function clientTables(facts: ReportFacts): Html {
  const { calls } = facts.figures;
  const where = place(facts);
  const { clientsWithoutAgent, estimatedCounts } = calls;
  return html`<p>Model calls by clients are made by a program itself, with a token, and not by a task. They are subject to the same policy, budgets and stops, and are included in the tables above.</p>
${table({
  caption: "Model calls by clients",
  columns: [{ name: "API" }, ...CALL_COLUMNS, ...MODEL_COLUMNS],
  rows: withOthers(calls.clients, (key, tally) => [
    { "": "not recorded", [PAST_CAP]: "further APIs", [NOT_CALLED]: "refused" }[key] ??
      API_NAMES[key] ??
      brief(key, 60),
    ...callCells(tally),
    ...modelCells(tally),
  ]),
  empty: `No model call by a client was recorded ${where}.`,
  note:
    clientsWithoutAgent === 0
      ? undefined
      : `${count(clientsWithoutAgent)} sent with tokens that do not act as an agent.`,
})}
${table({
  caption: "Prompts sent to count their tokens",
  columns: [{ name: "Model" }, ...CALL_COLUMNS],
  rows: withOthers(calls.counts, (key, tally) => [
    { [PAST_CAP]: "further models", [NOT_CALLED]: "refused under other names" }[key] ?? brief(key || "–", 60),
    ...callCells(tally),
  ]),
  empty: `No prompt was sent only to count its tokens ${where}.`,
  note:
    estimatedCounts === 0
      ? undefined
      : `${counted(estimatedCounts, "further count")} estimated by the gateway: nothing was sent.`,
})}`;
}

const CALL_COLUMNS = [
  { name: "Sent", ...NUMBER },
  { name: "Succeeded", ...NUMBER },
  { name: "Failed", ...NUMBER },
  { name: "Cancelled", ...NUMBER },
  { name: "Not sent", ...NUMBER },
];
const MODEL_COLUMNS = [
  { name: "As a fallback", ...NUMBER },
  { name: "Tokens in / out", ...NUMBER },
  { name: "On average", ...NUMBER },
  { name: "Credits", ...NUMBER },
];

function callCells({ sent, succeeded, failed, cancelled, refused }: CallTally): string[] {
  return [sent, succeeded, failed, cancelled, refused].map(count);
}

function modelCells(tally: CallTally): string[] {
  const answered = tally.succeeded + tally.failed + tally.cancelled;
  return [
    count(tally.fallbacks),
    `${count(tally.inputTokens)} / ${count(tally.outputTokens)}`,
    answered === 0 ? "–" : `${count(Math.round(tally.milliseconds / answered))} ms`,
    credits(tally.credits),
  ];
}

function withOthers(calls: CallsByName, row: (name: string, tally: CallTally) => HtmlPart[]): HtmlPart[][] {
  const rows = calls.sorted().map(([name, tally]) => row(name, tally));
  if (calls.others) rows.push(row(PAST_CAP, calls.others));
  if (calls.notCalled) rows.push(row(NOT_CALLED, calls.notCalled));
  return rows;
}

const SETTINGS = 12;

/** Fields of a change that are shown: hashes tell a reader nothing, and the rest is short. */
const SAID = [
  "fields",
  "version",
  "owner",
  "tiers",
  "models",
  "models_denied",
  "tools",
  "approvals",
  "approvals_required",
  "memory_scope",
  "connector",
  "kind",
  "name",
];

function changeRow(
  { seq, ts, action, agent, actor, detail = {} }: ReportEntryFields,
  overseers: Overseers,
): HtmlPart[] {
  // Any setting may have changed. The record of a change is short, so all its fields can be shown.
  const fields = action === "config.change" ? Object.keys(detail).slice(0, SETTINGS) : SAID;
  const said = fields.flatMap((key) => {
    const value = detail[key];
    return typeof value === "string" || typeof value === "number"
      ? [`${brief(key, 40)}: ${brief(String(value), 80)}`]
      : [];
  });
  return [
    count(seq),
    moment(ts),
    action,
    [agent === undefined ? "" : `agent ${agent}`, ...said].filter((text) => text !== "").join("; ") || "–",
    actorName(actor, overseers),
  ];
}
