import { DELAY_BOUNDS } from "../figures/decisions.ts";
import { place, type ReportFacts } from "./facts.ts";
import { type Html, type HtmlPart, html } from "./html.ts";
import { retentionText } from "./record.ts";
import { count, counted, span } from "./words.ts";

interface ArticleProvision {
  readonly name: string;
  /** Quoted from the Official Journal (OJ L, 2024/1689, 12.7.2024); "…" marks omissions. */
  readonly wording: string;
  readonly evidence: HtmlPart;
  readonly missing: HtmlPart;
}

/** Maps the records to the requirements of the Regulation, and names what is not recorded here. */
export function mappingSection(facts: ReportFacts): Html {
  return html`<section class="mapping"><h2>7. What this evidence supports</h2>
<p>Each row quotes a provision of Regulation (EU) 2024/1689 and lists the evidence in this bundle that supports it, and what this bundle does not contain. Article 14(4) requires that people to whom human oversight is assigned are enabled to do what it lists, “as appropriate and proportionate”.</p>
<table><caption>Provisions and evidence</caption>
<thead><tr><th scope="col">Provision</th><th scope="col">Evidence supporting it in this bundle</th><th scope="col">Not in this bundle</th></tr></thead>
<tbody>
${provisions(facts).map(
  ({ name, wording, evidence, missing }) =>
    html`<tr><th scope="row">${name}<q>${wording}</q></th><td>${evidence}</td><td>${missing}</td></tr>\n`,
)}</tbody></table></section>`;
}

function provisions(facts: ReportFacts): readonly ArticleProvision[] {
  return [...article14(facts), ...articles12And19And26(facts)];
}

function article14(facts: ReportFacts): readonly ArticleProvision[] {
  const { figures, overseers } = facts;
  const { decisions, calls, events } = figures;
  const where = place(facts);
  const [approvals, denials] = [decisions.of("approve"), decisions.of("deny")];
  const overrides = decisions.of("override");
  const { requests } = decisions;
  const deciding = overseers.isWithheld ? "not shown" : count(overseers.tokens.length + overseers.more);
  const isIdle = calls.allModels.sent + calls.allTools.sent + calls.tasks.dispatched === 0;
  return [
    {
      name: "Article 14(4)(a)",
      wording:
        "to properly understand the relevant capacities and limitations of the high-risk AI system and be able to duly monitor its operation, including in view of detecting and addressing anomalies, dysfunctions and unexpected performance",
      evidence: html`${
        isIdle
          ? `None of any operation: no task, model call or tool call was recorded ${where}.`
          : html`Which models, tiers and tools each agent used (section 4); ${counted(events.counts.failed, "failure")} and ${counted(events.counts.refused, "refusal")} by policy, by reason (section 5); ${counted(events.changes.count, "change")} to agents, connectors and settings.`
      } Tasks, their events and the ledger were viewed ${counted(events.readCount, "time")}.`,
      missing:
        "What people were told about capacities and limitations: instructions for use, training, test results. Whether they understood what they viewed.",
    },
    {
      name: "Article 14(4)(b)",
      wording:
        "to remain aware of the possible tendency of automatically relying or over-relying on the output produced by a high-risk AI system (automation bias) …",
      evidence:
        approvals + denials === 0
          ? `None: no approval or denial was recorded ${where}.`
          : html`${counted(approvals, "approval")}, ${counted(denials, "denial")}, ${counted(overrides, "override")}: ${share(approvals, denials)} of approvals and denials were approvals. ${
              decisions.timed === 0
                ? "The time people took is not recorded."
                : html`Approvals less than ${span(DELAY_BOUNDS[0])} after the call was presented: ${count(decisions.quickApprovals)} (section 3).`
            } Calls presented to people: ${count(requests.presented)}, expired undecided: ${count(requests.expired)}, withdrawn with their task: ${count(requests.withdrawn)}.`,
      missing:
        "Whether a quick or frequent approval was a considered one. Measures against automation bias outside this gateway, such as training and rotation of duties.",
    },
    {
      name: "Article 14(4)(c)",
      wording:
        "to correctly interpret the high-risk AI system’s output, taking into account, for example, the interpretation tools and methods available",
      evidence:
        isIdle && decisions.total === 0
          ? `None: no task, call or decision was recorded ${where}.`
          : html`For each decision: the tool, task and agent it concerned, and the hash of the call presented, if there was one (<code>arguments_hash</code>). For each task: the models that answered and the tools that were used, in order.`,
      missing:
        "The texts themselves: prompts, outputs and arguments appear only as hashes, and can be requested as long as they are kept. Explanations of a model’s output.",
    },
    {
      name: "Article 14(4)(d)",
      wording:
        "to decide, in any particular situation, not to use the high-risk AI system or to otherwise disregard, override or reverse the output of the high-risk AI system",
      evidence:
        denials + overrides + events.counts.cancelled === 0
          ? `None: no denial, override or cancelled task was recorded ${where}. Tokens with the right to deny: ${deciding} (section 2).`
          : html`Denials: ${count(denials)}. Overrides: ${count(overrides)}, of which approvals with changed arguments ${count(decisions.changed)} and disregarded outputs ${count(decisions.disregarded)} (section 3). Tasks cancelled on request: ${count(events.counts.cancelled)}.`,
      missing:
        "Decisions outside this gateway: if somebody reads an output and does not follow it, this leaves no trace here.",
    },
    {
      name: "Article 14(4)(e)",
      wording:
        "to intervene in the operation of the high-risk AI system or interrupt the system through a ‘stop’ button or a similar procedure that allows the system to come to a halt in a safe state",
      evidence:
        decisions.of("stop") === 0
          ? `No stop was recorded ${where}. Tokens with the right to stop: ${deciding} (section 2).`
          : html`Stops, of agents or of the whole workspace: ${count(decisions.of("stop"))}, resumptions: ${count(decisions.of("resume"))}, each with the person and the time (section 3). A stop ends running and queued work, and refuses new work until somebody resumes.`,
      missing: "Whether a stopped agent leaves other systems in a safe state.",
    },
  ];
}

function articles12And19And26(facts: ReportFacts): readonly ArticleProvision[] {
  const { figures, overseers, about } = facts;
  const { total, withheld } = about.counts;
  const { events } = figures;
  const looked = `Tasks, their events and the ledger were viewed ${counted(events.readCount, "time")}.`;
  return [
    {
      name: "Article 12(1)",
      wording:
        "High-risk AI systems shall technically allow for the automatic recording of events (logs) over the lifetime of the system.",
      evidence:
        total === 0
          ? "None: no entry was recorded in this period."
          : html`${counted(total, "entry", "entries")} of the period, each with the hash of the previous one, in a tree whose head is signed: verification detects entries that were changed, left out or added.${withheld === 0 ? null : ` Withheld by the filter: ${count(withheld)}.`}`,
      missing:
        "Events in systems that bypass this gateway. Checkpoints kept elsewhere: without one to compare with, anyone holding the signing key could have rewritten the ledger.",
    },
    {
      name: "Article 12(2)",
      wording:
        "… logging capabilities shall enable the recording of events relevant for: (a) identifying situations that may result in the high-risk AI system presenting a risk within the meaning of Article 79(1) or in a substantial modification; (b) facilitating the post-market monitoring referred to in Article 72; and (c) monitoring the operation of high-risk AI systems referred to in Article 26(5).",
      evidence: html`Recorded in this period, as far as this bundle includes it: ${counted(events.counts.failed, "failure")}, ${counted(events.counts.refused, "refusal")} by policy, ${counted(events.incidents.count, "incident")} concerning the record (section 5), ${counted(events.changes.count, "change")} to agents, connectors and settings (section 4).`,
      missing:
        "Which of these events point to a risk or amount to a substantial modification. Events that post-market monitoring collects elsewhere.",
    },
    {
      name: "Article 19(1)",
      wording:
        "Providers of high-risk AI systems shall keep the logs referred to in Article 12(1), automatically generated by their high-risk AI systems, to the extent such logs are under their control. … the logs shall be kept for a period appropriate to the intended purpose of the high-risk AI system, of at least six months …",
      evidence: retentionText(facts),
      missing: "Logs that other systems of the provider generate. Copies and backups of this ledger.",
    },
    {
      name: "Article 26(2)",
      wording:
        "Deployers shall assign human oversight to natural persons who have the necessary competence, training and authority, as well as the necessary support.",
      evidence: overseers.isWithheld
        ? "Not shown: the entries of this bundle do not include who holds the workspace's tokens (section 2)."
        : overseers.people === 0
          ? "None: no token that could decide names a person (section 2)."
          : html`People named as holders of tokens that could decide: ${count(overseers.people)}, with role, rights and expiry (section 2).`,
      missing: "Competence, training and support of these people. Proof that only its holder used a token.",
    },
    {
      name: "Article 26(5)",
      wording:
        "Deployers shall monitor the operation of the high-risk AI system on the basis of the instructions for use and, where relevant, inform providers in accordance with Article 72. …",
      evidence: `${looked} Failures recorded: ${count(events.counts.failed)}.`,
      missing:
        "The instructions for use. Reports of risks and serious incidents to providers and authorities. What was done about the observations.",
    },
    {
      name: "Article 26(6)",
      wording:
        "Deployers of high-risk AI systems shall keep the logs automatically generated by that high-risk AI system to the extent such logs are under their control, for a period appropriate to the intended purpose of the high-risk AI system, of at least six months …",
      evidence: retentionText(facts),
      missing: "Logs that other systems of the deployer generate. Copies and backups of this ledger.",
    },
  ];
}

function share(part: number, rest: number): string {
  return `${Math.round((part / (part + rest)) * 100)}%`;
}
