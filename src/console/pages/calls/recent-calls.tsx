import type { JSX } from "preact";
import { Status } from "../../parts/badge.tsx";
import { Card } from "../../parts/page.tsx";
import { Show } from "../../parts/problem.tsx";
import { countText, creditsText, durationText, Time } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { CLIENT_CALLS, type ClientCallRow, clientCallsOf, modelCallFacts } from "./client-calls.ts";
import { SHOWN, useClientCalls } from "./use-client-calls.ts";

/** The latest model calls that clients have made themselves, of one agent or of all callers. Updated live. */
export function RecentCalls({ agent }: { readonly agent: string | null }): JSX.Element {
  const { can } = useSession();
  const isReadable = can("ledger:read");
  const calls = useClientCalls(agent, isReadable);
  return (
    <Card
      title="Recent model calls by clients"
      actions={
        isReadable && <a href={callsAddress(agent)}>{agent === null ? "All of them" : "All its calls"}</a>
      }
    >
      {isReadable ? (
        <Show of={calls}>
          {({ data, next_cursor: next }) => <CallRows calls={clientCallsOf(data)} hasMore={next !== null} />}
        </Show>
      ) : (
        <p class="muted">
          To see calls, you need the scope <code>ledger:read</code>.
        </p>
      )}
    </Card>
  );
}

/** The ledger, filtered to clients' model calls. */
export function callsAddress(agent: string | null): string {
  const { action } = CLIENT_CALLS;
  const query = new URLSearchParams({ ...(agent === null ? {} : { agent }), action, outside_tasks: "true" });
  return `/console/ledger?${query}`;
}

function CallRows({
  calls,
  hasMore,
}: {
  readonly calls: readonly ClientCallRow[];
  /** A page may be empty although older entries match. */
  readonly hasMore: boolean;
}): JSX.Element {
  if (calls.length > 0) {
    return (
      <ul class="call-rows">
        {calls.slice(0, SHOWN).map((call) => (
          <CallRow key={call.entry.seq} call={call} />
        ))}
      </ul>
    );
  }
  return hasMore ? (
    <p class="muted">None among the newest entries.</p>
  ) : (
    <p class="muted">
      No calls yet. Give a client a token, and this server’s address as its base URL (Settings, Developers).
    </p>
  );
}

function CallRow({ call: { entry, status } }: { readonly call: ClientCallRow }): JSX.Element {
  const { api, inputTokens, outputTokens, firstTokenMs } = modelCallFacts(entry);
  const { seq, model, credits, code } = entry;
  return (
    <li>
      <Status status={status} />
      <a class="cut" href={`/console/ledger/${seq}`} title={model ?? undefined}>
        <span class="unseen">Model call: </span>
        {model ?? code ?? "no model"}
      </a>
      <span class="cut muted">{api ?? ""}</span>
      <span class="number">
        {inputTokens !== null && (
          <>
            {countText(inputTokens)}
            <span class="muted"> in, </span>
            {countText(outputTokens ?? 0)}
            <span class="muted"> out</span>
          </>
        )}
      </span>
      <span class="number">
        {firstTokenMs !== null && (
          <>
            <span class="unseen">First token after </span>
            {durationText(firstTokenMs)}
          </>
        )}
      </span>
      <span class="number">
        {credits !== null && (
          <>
            {creditsText(credits / 1_000_000)}
            <span class="muted"> credits</span>
          </>
        )}
      </span>
      <Time at={entry.ts} />
    </li>
  );
}
