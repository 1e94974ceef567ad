import { CALL_SERIES, DECISION_SERIES } from "../figures/timeline.ts";
import { timeChart } from "./chart.ts";
import type { ReportFacts } from "./facts.ts";
import { type Html, html } from "./html.ts";
import { count, credits } from "./words.ts";

const DECISION_NAMES = {
  approve: "approvals",
  deny: "denials",
  override: "overrides",
  stop: "stops",
  resume: "resumptions",
  other: "others",
};

const CALL_NAMES = { refused: "refused by policy" };

/** The figures that readers look for first, and their distribution over time. */
export function summary({ figures, overseers }: ReportFacts): Html {
  const { decisions, calls, events, timeline } = figures;
  const tile = (value: number, one: string, many = `${one}s`) =>
    [count(value), value === 1 ? one : many] as const;
  const tiles: readonly (readonly [string, string])[] = [
    tile(decisions.total, "decision by a person", "decisions by people"),
    tile(decisions.of("approve"), "approval"),
    tile(decisions.of("deny"), "denial"),
    tile(decisions.of("override"), "override"),
    tile(decisions.of("stop"), "stop"),
    tile(decisions.of("resume"), "resumption"),
    tile(decisions.expired, "request that nobody decided in time", "requests that nobody decided in time"),
    ...(overseers.isWithheld
      ? []
      : [
          tile(
            overseers.tokens.length + overseers.more,
            "token that could decide",
            "tokens that could decide",
          ),
        ]),
    tile(calls.tasks.dispatched, "task dispatched", "tasks dispatched"),
    tile(calls.allModels.sent, "model call"),
    tile(calls.allClients.sent, "of them made by a client", "of them made by clients"),
    tile(calls.allCounts.sent, "prompt sent to count its tokens", "prompts sent to count their tokens"),
    tile(calls.allTools.sent, "tool call"),
    tile(events.counts.refused, "call refused by policy", "calls refused by policy"),
    tile(events.counts.failed, "call failed", "calls failed"),
    [credits(calls.credits), "credits spent on models"],
    tile(events.counts.cancelled, "task cancelled on request", "tasks cancelled on request"),
  ];
  return html`<section><h2>1. At a glance</h2>
<ul class="tiles">${tiles.map(([value, name]) => html`<li><b>${value}</b>${name}</li>\n`)}</ul>
${timeChart({ id: "decisions", title: "Decisions by people", series: DECISION_SERIES, names: DECISION_NAMES, timeline })}
${timeChart({ id: "calls", title: "Model calls, tool calls and refusals by policy", series: CALL_SERIES, names: CALL_NAMES, timeline })}
</section>`;
}
