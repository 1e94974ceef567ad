import { DELAY_BOUNDS, type Decision, type Decisions } from "../figures/decisions.ts";
import type { Overseer } from "../figures/overseers.ts";
import type { EntryFields } from "../format/entry.ts";
import { secondsToDecide } from "../format/oversight.ts";
import { place, type ReportFacts } from "./facts.ts";
import { type Html, type HtmlPart, html, table } from "./html.ts";
import { brief, count, counted, ending, moment, span } from "./words.ts";

const NUMBER = { kind: "number" } as const;
const TIME = { kind: "time" } as const;

/** Who could oversee: the holders of tokens that can decide and stop. */
export function overseersSection({ overseers }: ReportFacts): Html {
  const { tokens, more, others, unread } = overseers;
  const left = [
    more > 0 ? `${counted(more, "more token")} that can decide` : "",
    unread > 0
      ? `${counted(unread, "token")} past those that a report looks at: see the entries token.issue`
      : "",
  ].filter((text) => text !== "");
  return html`<section><h2>2. Who could oversee</h2>
<p>Whoever holds a token with the right <code>approvals:write</code> or <code>admin</code> can approve, deny, stop an agent and let it work again. These tokens could be used in the period, as the entries that issued, rotated and revoked them say. Those entries may lie before the period: ask for one by its number, with its proof. ${others === 0 ? null : html`${counted(others, "other token")} could be used and could not decide.`}</p>
${table({
  caption: "Tokens that could decide",
  columns: [
    { name: "Person" },
    { name: "Role" },
    { name: "Rights" },
    { name: "Token" },
    { name: "Issued", ...TIME },
    { name: "Until" },
    { name: "Entry", ...NUMBER },
  ],
  rows: tokens.map(overseerRow),
  empty: "No token that could decide is recorded up to the end of the period.",
  note: left.length === 0 ? undefined : `${left.join("; ")}.`,
})}
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
  ["settings:write", "change settings, erase texts"],
  ["ledger:read", "read the ledger"],
];

function rightsOf({ scopes, agent }: Overseer): string {
  const known = RIGHTS.filter(([scope]) => scopes.includes(scope)).map(([, right]) => right);
  return `${scopes.includes("admin") ? "everything" : known.join("; ")}${agent === null ? "" : `; as the agent ${agent}`}`;
}

/** What people decided, how long it took them, and each decision. */
export function decisionsSection(facts: ReportFacts): Html {
  const { decisions } = facts.figures;
  return html`<section><h2>3. What people decided</h2>
${decisions.total === 0 ? html`<p class="none">No decision of a person was recorded ${place(facts)}: nothing was approved, denied, overridden, stopped or resumed.</p>` : html`${peopleTable(decisions)}${delays(decisions)}`}
<p>${whatBecameOf(decisions)}</p>
${decisionsTable(decisions)}
</section>`;
}

function whatBecameOf(decisions: Decisions): string {
  const { presented, expired, changed, disregarded, refused } = decisions;
  const replaced = decisions.of("override") - changed - disregarded;
  return [
    `Calls put before people for approval: ${count(presented)}; expired, with nobody having decided in time: ${count(expired)}.`,
    `Overrides: ${counted(changed, "approval")} of other arguments than those asked for, ${counted(disregarded, "disregarded output")}, ${counted(replaced, "replaced output")}.`,
    `Decisions that were attempted and refused, or failed: ${count(refused)}.`,
  ].join(" ");
}

const SHOWN_DECISIONS: readonly (readonly [Decision, string])[] = [
  ["approve", "Approved"],
  ["deny", "Denied"],
  ["override", "Overridden"],
  ["stop", "Stopped"],
  ["resume", "Resumed"],
  ["other", "Other"],
];

function peopleTable({ people }: Decisions): Html {
  const total = ([...tally]: Iterable<readonly [Decision, number]>) =>
    tally.reduce((sum, [, value]) => sum + value, 0);
  const rows = people.sorted(({ decisions }) => total(decisions));
  return table({
    caption: "Decisions by person",
    columns: [
      { name: "Person" },
      { name: "Role" },
      ...SHOWN_DECISIONS.map(([, name]) => ({ name, ...NUMBER })),
      { name: "Took on average", ...NUMBER },
      { name: "Shortest to longest", ...NUMBER },
    ],
    rows: rows.map(([person, tally]) => [
      brief(person, 60),
      brief([...tally.roles].join(", ") || "–", 60),
      ...SHOWN_DECISIONS.map(([decision]) => count(tally.decisions.get(decision) ?? 0)),
      tally.timed === 0 ? "–" : span(tally.seconds / tally.timed),
      tally.timed === 0 ? "–" : `${span(tally.shortest)} to ${span(tally.longest)}`,
    ]),
    empty: "",
    note: people.others === null ? undefined : "Further people are counted in the totals alone.",
  });
}

function delays({ delays: counts, timed }: Decisions): Html {
  if (timed === 0) {
    return html`<p>How long people had a case before them is not recorded of any of these decisions: none of them answered a request that was presented to them.</p>`;
  }
  const names = DELAY_BOUNDS.map((bound, at) =>
    at === 0 ? `under ${span(bound)}` : `${span(DELAY_BOUNDS[at - 1])} to ${span(bound)}`,
  );
  return table({
    caption: "From presented to decided",
    columns: [...names, `over ${span(DELAY_BOUNDS.at(-1))}`].map((name) => ({ name, ...NUMBER })),
    rows: [counts.map((value) => `${count(value)} (${Math.round((value / timed) * 100)} %)`)],
    empty: "",
    note: `Of ${counted(timed, "decision")} of which both times are recorded.`,
  });
}

function decisionsTable({ listed }: Decisions): Html | null {
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
    rows: listed.items.map(decisionRow),
    empty: "",
    note: listed.left === 0 ? undefined : `${count(listed.left)} more in oversight.csv.`,
  });
}

function decisionRow(entry: EntryFields): HtmlPart[] {
  const { oversight, outcome, agent, tool, task } = entry;
  const decision = oversight?.decision ?? entry.action;
  return [
    count(entry.seq),
    moment(oversight?.presented_at),
    moment(oversight?.decided_at ?? entry.ts),
    html`${brief(oversight?.person ?? entry.actor, 60)}${oversight?.role === undefined ? null : html`, <span class="soft">${brief(oversight.role, 60)}</span>`}`,
    outcome === "succeeded" || outcome === "allowed"
      ? brief(decision, 30)
      : html`${brief(decision, 30)} <i>(${outcome}${entry.code === undefined ? "" : `: ${entry.code}`})</i>`,
    [agent && `agent ${agent}`, tool && `tool ${tool}`, task && `task ${ending(task)}`]
      .filter((part) => part)
      .join(", ") || "–",
    span(secondsToDecide(entry)),
  ];
}
