import type { JSX } from "preact";
import type { LedgerEntry } from "../../../http/api.ts";
import { Actor } from "../../parts/actor.tsx";
import { Status } from "../../parts/badge.tsx";
import { countText, creditsText, durationText, shortId, Time } from "../../parts/text.tsx";
import { isClientCall, modelCallFacts } from "../calls/client-calls.ts";

/** Column headings. Hidden from screen readers, which read each cell's label instead. */
export function EntryHead(): JSX.Element {
  return (
    <div class="entry-row entry-head muted small" aria-hidden="true">
      <span class="entry-seq">Entry</span>
      <span>Time</span>
      <span>Action</span>
      <span>Outcome</span>
      <span>Who</span>
      <span>About</span>
      <span class="entry-credits">Credits</span>
    </div>
  );
}

/** An entry of the list. The whole row links to it. */
export function EntryRow({ entry }: { readonly entry: LedgerEntry }): JSX.Element {
  const { seq, ts, action, outcome, code, actor, phase, ref, credits } = entry;
  return (
    <div class="entry-row">
      <a class="entry-seq number entry-link" href={`/console/ledger/${seq}`}>
        <span class="unseen">Entry </span>
        {countText(seq)}
      </a>
      <span class="entry-time">
        <Time at={ts} />
      </span>
      <span class="entry-action cut" title={action}>
        <code>{action}</code>
        {phase !== "single" && (
          <span class="muted small">
            {" "}
            {phase === "intent" ? "intent" : `outcome of ${countText(ref ?? 0)}`}
          </span>
        )}
      </span>
      <span class="entry-outcome cut" title={code ?? undefined}>
        <Status status={outcome} />
        {code !== null && <span class="small muted"> {code}</span>}
      </span>
      <span class="entry-who cut" title={whoOf(entry)}>
        <span class="unseen">by </span>
        {entry.oversight?.person ?? <Actor of={actor} />}
      </span>
      <span class="entry-about cut" title={aboutOf(entry).join(" · ")}>
        {aboutOf(entry).length > 0 && <span class="unseen">about </span>}
        {aboutOf(entry).join(" · ")}
      </span>
      <span class="entry-credits number">
        {credits !== null && (
          <>
            {creditsText(credits / 1_000_000)}
            <span class="entry-unit"> credits</span>
          </>
        )}
      </span>
    </div>
  );
}

function whoOf({ actor, oversight }: LedgerEntry): string {
  if (oversight === null) return actor;
  return `${oversight.person}${oversight.role === undefined ? "" : `, ${oversight.role}`} (${actor})`;
}

function aboutOf(entry: LedgerEntry): string[] {
  const { agent, tool, model, tier, task } = entry;
  return [
    agent ?? "",
    tool ?? "",
    model ?? "",
    tier === null ? "" : `tier ${tier}`,
    task === null ? "" : shortId(task),
    ...(isClientCall(entry) ? callParts(entry) : []),
  ].filter((part) => part !== "");
}

function callParts(entry: LedgerEntry): string[] {
  const { api, attempt, inputTokens, outputTokens, firstTokenMs, countedTokens } = modelCallFacts(entry);
  return [
    api ?? "",
    attempt === null || attempt === 1 ? "" : `attempt ${attempt}`,
    inputTokens === null ? "" : `${countText(inputTokens)} in, ${countText(outputTokens ?? 0)} out`,
    firstTokenMs === null ? "" : `first token ${durationText(firstTokenMs)}`,
    countedTokens === null ? "" : `${countText(countedTokens)} tokens counted`,
  ];
}
