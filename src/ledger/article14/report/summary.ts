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

/** The figures that one looks for first, and how they lie in time. */
export function summary({ figures, overseers }: ReportFacts): Html {
  const { decisions, calls, events, timeline } = figures;
  const tiles: readonly (readonly [string, string])[] = [
    [count(decisions.total), "decisions by people"],
    [count(decisions.of("approve")), "approvals"],
    [count(decisions.of("deny")), "denials"],
    [count(decisions.of("override")), "overrides"],
    [count(decisions.of("stop")), "stops"],
    [count(decisions.of("resume")), "resumptions"],
    [count(decisions.expired), "requests that nobody decided in time"],
    [count(overseers.tokens.length + overseers.more), "tokens that could decide"],
    [count(calls.tasks.dispatched), "tasks dispatched"],
    [count(calls.allModels.sent), "model calls"],
    [count(calls.allTools.sent), "tool calls"],
    [count(events.counts.refused), "calls refused"],
    [count(events.counts.failed), "calls failed"],
    [credits(calls.credits), "credits spent on models"],
    [count(events.counts.cancelled), "tasks cancelled by a call"],
  ];
  return html`<section><h2>1. At a glance</h2>
<ul class="tiles">${tiles.map(([value, name]) => html`<li><b>${value}</b>${name}</li>\n`)}</ul>
${timeChart({ id: "decisions", title: "Decisions by people", series: DECISION_SERIES, names: DECISION_NAMES, timeline })}
${timeChart({ id: "calls", title: "Calls of models and tools, and what was refused", series: CALL_SERIES, timeline })}
</section>`;
}
