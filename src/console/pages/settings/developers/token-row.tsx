import type { JSX } from "preact";
import type { Token } from "../../../../http/api.ts";
import { Badge } from "../../../parts/badge.tsx";
import { Time } from "../../../parts/text.tsx";
import { useSession } from "../../../state/session.tsx";

const SOON_MS = 7 * 86_400_000;

/** A token without its secret, and its actions. */
export function TokenRow({
  token,
  isOwn,
  issuer,
  rotate,
  revoke,
}: {
  readonly token: Token;
  readonly isOwn: boolean;
  /** The issuer's name, if known. */
  readonly issuer: string;
  readonly rotate: () => void;
  readonly revoke: () => void;
}): JSX.Element {
  const { can } = useSession();
  return (
    <li class="settings-token">
      <div class="stack-small">
        <div class="row">
          <h3 class="break">{token.name}</h3>
          {isOwn && <Badge tone="info" text="you, now" />}
          <Expiry at={token.expires_at} />
        </div>
        <code class="small muted break">{token.id}</code>
        {can("ledger:read") && (
          <a class="small" href={`/console/ledger?actor=${encodeURIComponent(`token:${token.id}`)}`}>
            Activity<span class="unseen">: {token.name}</span>
          </a>
        )}
      </div>
      <div class="stack-small small">
        <div>
          {token.agent === null ? (
            <span class="muted">Does not act as an agent</span>
          ) : (
            <>
              Acts as <a href={`/console/agents/${encodeURIComponent(token.agent)}`}>{token.agent}</a>
            </>
          )}
          {token.tools_mode === "search" && <span class="muted"> · searches for its tools</span>}
        </div>
        <ul class="settings-chips" aria-label="Scopes">
          {token.scopes.map((scope) => (
            <li key={scope} class="chip">
              {scope}
            </li>
          ))}
        </ul>
      </div>
      <dl class="facts small">
        <dt>Held by</dt>
        <dd>
          {token.person ?? <span class="muted">no one named</span>}
          {token.role !== null && <span class="muted"> · {token.role}</span>}
        </dd>
        <dt>Last used</dt>
        <dd>
          {token.last_used_at === null ? <span class="muted">never</span> : <Time at={token.last_used_at} />}
        </dd>
        <dt>Expires</dt>
        <dd>
          {token.expires_at === null ? (
            <span class="muted">never</span>
          ) : (
            <Time at={token.expires_at} whole />
          )}
        </dd>
        <dt>Issued</dt>
        <dd>
          <Time at={token.created_at} /> <span class="muted">by {issuer}</span>
        </dd>
      </dl>
      <div class="row settings-token-end">
        <button type="button" class="button-small" onClick={rotate}>
          Rotate<span class="unseen"> {token.name}</span>
        </button>
        <button type="button" class="button-small" onClick={revoke}>
          Revoke<span class="unseen"> {token.name}</span>
        </button>
      </div>
    </li>
  );
}

function Expiry({ at }: { readonly at: string | null }): JSX.Element | null {
  if (at === null) return null;
  const left = Date.parse(at) - Date.now();
  if (left <= 0) return <Badge tone="bad" text="expired" />;
  return left < SOON_MS ? <Badge tone="warn" text="expires soon" /> : null;
}
