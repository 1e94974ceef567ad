import type { JSX } from "preact";
import type { UsageReport } from "../../../http/api.ts";
import { countText, creditsText, durationText, plural } from "../../parts/text.tsx";
import { callsAddress } from "../calls/recent-calls.tsx";

/** Totals of clients' own model calls in the period of a usage report. */
export function ClientFigures({ report }: { readonly report: UsageReport }): JSX.Element {
  const { agent, totals } = report;
  const {
    calls,
    failed,
    cancelled,
    credits,
    input_tokens: input,
    output_tokens: output,
  } = totals.client_calls;
  const { p50, p95 } = totals.latency_ms.first_token;
  const { requests } = totals.token_counts;
  return (
    <section class="figures" aria-label="Model calls by clients">
      <a class="figure" href={callsAddress(agent)}>
        <span class="figure-name">Model calls by clients</span>
        <span class="figure-value number">{countText(calls)}</span>
        <span class="figure-note number">
          {requests === 0 ? "outside of tasks" : `and ${plural(requests, "count")} of tokens`}
        </span>
      </a>
      <Figure name="Failed" value={countText(failed)} note={`${countText(cancelled)} cancelled`} />
      <Figure
        name="Clients' credits"
        value={creditsText(credits)}
        note={`of ${creditsText(totals.credits)}`}
      />
      <Figure
        name="Clients' tokens"
        value={countText(input + output)}
        note={`${countText(input)} in, ${countText(output)} out`}
      />
      <Figure
        name="First token"
        value={p50 === null ? "–" : durationText(p50)}
        note={p95 === null ? "median" : `median, p95 ${durationText(p95)}`}
      />
    </section>
  );
}

function Figure({
  name,
  value,
  note,
}: {
  readonly name: string;
  readonly value: string;
  readonly note: string;
}): JSX.Element {
  return (
    <div class="figure">
      <span class="figure-name">{name}</span>
      <span class="figure-value number">{value}</span>
      <span class="figure-note number">{note}</span>
    </div>
  );
}
