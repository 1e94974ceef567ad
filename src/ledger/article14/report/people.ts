import {
  DELAY_BOUNDS,
  type DecisionFigure,
  type Decisions,
  type PersonTally,
  readPersonKey,
} from "../figures/decisions.ts";
import type { Overseer, Overseers } from "../figures/overseers.ts";
import type { ReportEntryFields } from "../format/entry.ts";
import { secondsToDecide } from "../format/oversight.ts";
import { place, type ReportFacts } from "./facts.ts";
import { deciderOf } from "./holders.ts";
import { type Html, type HtmlPart, html, table } from "./html.ts";
import { brief, count, counted, ending, moment, span } from "./words.ts";

const NUMBER = { kind: "number" } as const;
const TIME = { kind: "time" } as const;

const OVERSEER_COLUMNS = [
  { name: "Person" },
  { name: "Role" },
  { name: "Rights" },
  { name: "Token" },
  { name: "Issued", ...TIME },
  { name: "Until" },
  { name: "Entry", ...NUMBER },
];

/** Who could oversee: holders of tokens that can decide and stop. */
export function overseersSection({ overseers }: ReportFacts): Html {
  const { tokens, more, others, unread, agentTokens, moreAgentTokens } = overseers;
  if (overseers.isWithheld) {
    return html`<section><h2>2. Who could oversee</h2>
<p class="none">Not shown: this bundle was exported with a token that acts as an agent and may read only the entries about that agent. These do not include the workspace's tokens.</p>
</section>`;
  }
  const left = [
    more > 0 ? `${counted(more, "more token")} that can decide` : "",
    unread > 0 ? `${counted(unread, "token")} past the limit of a report: see the token.issue entries` : "",
  ].filter((text) => text !== "");
  return html`<section><h2>2. Who could oversee</h2>
<p>Anyone holding a token with the right <code>approvals:write</code> or <code>admin</code> can approve, deny, override a task's output, and stop and resume an agent or the whole workspace. Tokens that act as an agent are refused. The tokens below were usable in the period, according to the entries that issued, rotated and revoked them. Such an entry may precede the period: request it by its number, with its proof. ${others === 0 ? null : html`${counted(others, "other token")} could be used but could not decide.`}</p>
${table({
  caption: "Tokens that could decide",
  columns: OVERSEER_COLUMNS,
  rows: tokens.map(overseerRow),
  empty: "No token that could decide was recorded up to the end of the period.",
  note: left.length === 0 ? undefined : `${left.join("; ")}.`,
})}
${
  agentTokens.length === 0
    ? null
    : table({
        caption: "Tokens with these rights that act as an agent and therefore cannot decide",
        columns: OVERSEER_COLUMNS,
        rows: agentTokens.map(overseerRow),
        empty: "",
        note: moreAgentTokens === 0 ? undefined : `${counted(moreAgentTokens, "more such token")}.`,
      })
}
</section>`;
}

function overseerRow(token: Overseer): HtmlPart[] {
  const until =
    token.revokedAt !== null
      ? html`revoked ${moment(token.revokedAt)}`
      : token.expiresAt !== null
        ? moment(token.expiresAt)
        : "no end";
  return [
    token.person === null ? html`<i>no person named</i>` : brief(token.person, 60),
    token.role === null ? "–" : brief(token.role, 60),
    rightsOf(token),
    html`<code>${ending(token.token)}</code>${token.name === null ? null : html` ${brief(token.name, 40)}`}${token.rotations === 0 ? null : html` (${counted(token.rotations, "rotation")})`}`,
    moment(token.issuedAt),
    until,
    count(token.seq),
  ];
}

const RIGHTS: readonly (readonly [scope: string, right: string])[] = [
  ["admin", "everything"],
  ["approvals:write", "approve, deny, stop, resume"],
  ["tasks:write", "dispatch and cancel tasks"],
  ["agents:write", "change agents"],
  ["connectors:write", "change connectors"],
  ["tokens:write", "issue tokens"],
  ["settings:write", "change settings, erase content"],
  ["ledger:read", "read the ledger"],
];

function rightsOf({ scopes, agent }: Overseer): string {
  if (agent !== null) return `acts as the agent ${agent}, cannot decide on calls`;
  const known = RIGHTS.filter(([scope]) => scopes.includes(scope)).map(([, right]) => right);
  return `${scopes.includes("admin") ? "everything" : known.join("; ")}`;
}

/** People's decisions, how long they took, and a list of them. */
export function decisionsSection(facts: ReportFacts): Html {
  const { decisions } = facts.figures;
  return html`<section><h2>3. What people decided</h2>
${decisions.total === 0 ? html`<p class="none">No decision by a person was recorded ${place(facts)}: nothing was approved, denied, overridden, stopped or resumed.</p>` : html`${peopleTable(decisions, facts.overseers)}${delays(decisions)}`}
<p>${whatBecameOf(facts)}</p>
${decisionsTable(decisions, facts.overseers)}
</section>`;
}

function whatBecameOf(facts: ReportFacts): string {
  const { decisions } = facts.figures;
  const { requests, changed, disregarded, refused } = decisions;
  const replaced = decisions.of("override") - changed - disregarded;
  return [
    facts.overseers.isWithheld
      ? `Decisions: ${count(decisions.total)}, each under the name in its entry. Which of these names are people's is not shown (section 2).`
      : `Decisions: ${count(decisions.total)}, of which without a named person: ${count(unnamedDecisions(decisions, facts.overseers))}.`,
    `Calls presented to people for approval: ${count(requests.presented)} = ${count(requests.approved)} approved + ${count(requests.denied)} denied + ${count(requests.expired)} expired because nobody decided in time + ${count(requests.withdrawn)} withdrawn because their task ended first + ${count(requests.waiting)} ${facts.about.counts.withheld > 0 ? "without a further included entry" : "still waiting at the end of the period"}${requests.unfollowed === 0 ? "" : ` + ${count(requests.unfollowed)} not followed, because too many were waiting at once`}.`,
    requests.earlier === 0
      ? ""
      : `On calls presented ${facts.about.counts.withheld > 0 ? "by other entries" : "before the period"}: ${counted(requests.earlier, "decision or expiry", "decisions or expiries")}.`,
    `Overrides: ${counted(changed, "approval")} with changed arguments, ${counted(disregarded, "disregarded output")}, ${counted(replaced, "replaced output")}.`,
    `Attempted decisions that were refused or failed: ${count(refused)}.`,
  ]
    .filter((text) => text !== "")
    .join(" ");
}

const SHOWN_PEOPLE = 200;

function totalOf({ decisions }: PersonTally): number {
  return [...decisions.values()].reduce((sum, value) => sum + value, 0);
}

/** Decisions past the cap of names are included, since their names were not looked up. */
function unnamedDecisions({ people }: Decisions, overseers: Overseers): number {
  const rows = people.sorted(totalOf).filter(([key]) => {
    const { name, actor } = readPersonKey(key);
    return !deciderOf(name, actor, overseers).isNamed;
  });
  return rows.reduce((sum, [, tally]) => sum + totalOf(tally), people.others ? totalOf(people.others) : 0);
}

const SHOWN_DECISIONS: readonly (readonly [DecisionFigure, string])[] = [
  ["approve", "Approved"],
  ["deny", "Denied"],
  ["override", "Overridden"],
  ["stop", "Stopped"],
  ["resume", "Resumed"],
  ["other", "Other"],
];

/** One row per token. A person may hold several tokens; they are not added up. */
function peopleTable({ people }: Decisions, overseers: Overseers): Html {
  const all = people.sorted(totalOf);
  const rows = all.slice(0, SHOWN_PEOPLE);
  return table({
    caption: "Decisions by person",
    columns: [
      { name: "Person" },
      { name: "Role" },
      ...SHOWN_DECISIONS.map(([, name]) => ({ name, ...NUMBER })),
      { name: "Took on average", ...NUMBER },
      { name: "Shortest to longest", ...NUMBER },
    ],
    rows: rows.map(([key, tally]) => [
      deciderText(key, overseers),
      brief([...tally.roles].join(", ") || "–", 60),
      ...SHOWN_DECISIONS.map(([decision]) => count(tally.decisions.get(decision) ?? 0)),
      tally.timed === 0 ? "–" : span(tally.seconds / tally.timed),
      tally.timed === 0 ? "–" : `${span(tally.shortest)} to ${span(tally.longest)}`,
    ]),
    empty: "",
    note:
      people.others === null && all.length === rows.length
        ? undefined
        : "Further people are counted only in the totals.",
  });
}

function deciderText(key: string, overseers: Overseers): string {
  const { name, actor } = readPersonKey(key);
  return deciderOf(name, actor, overseers).text;
}

function delays({ delays: counts, timed }: Decisions): Html {
  if (timed === 0) {
    return html`<p>No time to decide is recorded for these decisions: none of them answered a request presented to a person.</p>`;
  }
  const names = DELAY_BOUNDS.map((bound, at) =>
    at === 0 ? `under ${span(bound)}` : `${span(DELAY_BOUNDS[at - 1])} to ${span(bound)}`,
  );
  return table({
    caption: "Time from presentation to decision",
    columns: [...names, `over ${span(DELAY_BOUNDS.at(-1))}`].map((name) => ({ name, ...NUMBER })),
    rows: [counts.map((value) => `${count(value)} (${Math.round((value / timed) * 100)}%)`)],
    empty: "",
    note: `Includes ${counted(timed, "decision")} with both times recorded.`,
  });
}

function decisionsTable({ listed }: Decisions, overseers: Overseers): Html | null {
  if (listed.count === 0) return null;
  return table({
    caption: "Each decision",
    columns: [
      { name: "Entry", ...NUMBER },
      { name: "Presented", ...TIME },
      { name: "Decided", ...TIME },
      { name: "Person" },
      { name: "Decision" },
      { name: "About" },
      { name: "Took", ...NUMBER },
    ],
    rows: listed.items.map((entry) => decisionRow(entry, overseers)),
    empty: "",
    note: listed.left === 0 ? undefined : `${count(listed.left)} more in oversight.csv.`,
  });
}

const DECISION_WORDS: Readonly<Record<string, string>> = {
  approve: "approved",
  change: "approved with changed arguments",
  deny: "denied",
  expire: "expired: nobody decided in time",
  override: "output overridden",
  disregard: "output disregarded",
  stop: "stopped",
  resume: "resumed",
  cancel: "task cancelled",
};

function decisionRow(entry: ReportEntryFields, overseers: Overseers): HtmlPart[] {
  const { oversight, outcome, agent, tool, task } = entry;
  const said = oversight?.decision ?? entry.action;
  const decision = Object.hasOwn(DECISION_WORDS, said) ? (DECISION_WORDS[said] ?? said) : brief(said, 30);
  const decider =
    said === "expire" ? "nobody" : deciderOf(oversight?.person ?? "", entry.actor, overseers).text;
  return [
    count(entry.seq),
    moment(oversight?.presented_at),
    moment(oversight?.decided_at ?? entry.ts),
    html`${decider}${oversight?.role === undefined ? null : html`, <span class="soft">${brief(oversight.role, 60)}</span>`}`,
    outcome === "succeeded" || outcome === "allowed" || said === "expire"
      ? decision
      : html`${decision} <i>(${outcome}${entry.code === undefined ? "" : `: ${entry.code}`})</i>`,
    [agent && `agent ${agent}`, tool && `tool ${tool}`, task && `task ${ending(task)}`, extentOf(entry)]
      .filter((part) => part)
      .join(", ") || "–",
    span(secondsToDecide(entry)),
  ];
}

/** The extent of a stop or resumption that covered more than one agent. */
function extentOf({ detail }: ReportEntryFields): string | undefined {
  if (detail?.extent === "workspace") return "the whole workspace";
  return detail?.extent === "node" ? "every workspace of the node" : undefined;
}
