import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { IssuedToken, Token } from "../../../../http/api.ts";
import { call } from "../../../api/client.ts";
import { Confirm } from "../../../parts/dialog.tsx";
import { Card, Empty } from "../../../parts/page.tsx";
import { Loading, ProblemNote } from "../../../parts/problem.tsx";
import { notify } from "../../../parts/toast.tsx";
import { useSession } from "../../../state/session.tsx";
import { useAction } from "../../../state/use-action.ts";
import { useData } from "../../../state/use-data.ts";
import { usePages } from "../../../state/use-pages.ts";
import { useReadAgain } from "../read-again.ts";
import { IssueDialog } from "./issue.tsx";
import { issuerOf } from "./issuer.ts";
import { usableTier } from "./model-snippets.ts";
import { RotateDialog } from "./rotate.tsx";
import { SecretDialog } from "./secret.tsx";
import { TokenRow } from "./token-row.tsx";

const ADDRESS = "/console/settings/developers";
const PAGE_SIZE = 100;

interface ShownToken {
  readonly token: IssuedToken;
  readonly former?: string | null;
}

/**
 * The workspace's tokens. `?issue` opens the form, and `&agent=` preselects an agent, for links from other pages. A
 * new secret is kept only in this component's state.
 */
export function Developers(): JSX.Element {
  const { query, route } = useLocation();
  const { session, can } = useSession();
  const [shown, setShown] = useState<ShownToken | null>(null);
  const tokens = usePages<Token>("tokens", (cursor, signal) =>
    call("GET /v1/tokens", {
      query: { limit: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) },
      signal,
    }),
  );
  useReadAgain("token.changed", tokens.reload);
  const agents = useData("GET /v1/agents", can("agents:read") ? { query: { limit: 200 } } : null, [
    "agent.changed",
  ]);
  const tiers = useData("GET /v1/tiers", can("agents:read") ? { query: { limit: 200 } } : null);
  const names = agents.data?.data.map(({ name }) => name);
  const active = agents.data?.data.find(({ status }) => status === "active")?.name;

  /** A tier for the examples. Unknown if the token's agent is unknown, because its policy may allow another one. */
  function tierFor({ agent }: IssuedToken): string | null {
    const found = agents.data?.data.find(({ name }) => name === agent);
    return tiers.data && (agent === null || found) ? usableTier(tiers.data.data, found) : null;
  }

  function show(token: IssuedToken, former?: string | null): void {
    setShown(former === undefined ? { token } : { token, former });
    tokens.reload();
  }

  return (
    <Card
      title="Tokens"
      actions={
        <a class="button button-main" href={`${ADDRESS}?issue=1`}>
          Issue token
        </a>
      }
    >
      <p class="muted">
        Every program, MCP client and person signs in with a token. A token may do what its scopes permit; if
        it acts as an agent, no more than that agent.
      </p>
      <ProblemNote problem={tokens.problem} retry={tokens.reload} />
      <TokenList tokens={tokens.items} shown={show} revoked={tokens.reload} />
      {tokens.items.length === 0 && tokens.isLoading && <Loading />}
      {tokens.items.length === 0 && tokens.isWhole && (
        <Empty title="No tokens yet">
          Issue one for each program and person, so that you can revoke them separately.
        </Empty>
      )}
      {!tokens.isWhole && tokens.items.length > 0 && (
        <div>
          <button type="button" disabled={tokens.isLoading} onClick={tokens.more}>
            Show older tokens
          </button>
        </div>
      )}
      {query.issue !== undefined && shown === null && (
        <IssueDialog
          agents={names}
          agent={query.agent ?? ""}
          close={() => route(ADDRESS, true)}
          issued={(token) => {
            show(token);
            route(ADDRESS, true);
          }}
        />
      )}
      {shown && (
        <SecretDialog
          {...shown}
          agent={shown.token.agent ?? session.agent ?? active ?? null}
          model={tierFor(shown.token)}
          close={() => setShown(null)}
        />
      )}
    </Card>
  );
}

function TokenList({
  tokens,
  shown,
  revoked,
}: {
  readonly tokens: readonly Token[];
  readonly shown: (token: IssuedToken, former: string | null) => void;
  readonly revoked: () => void;
}): JSX.Element {
  const { session } = useSession();
  const [rotating, setRotating] = useState<Token | null>(null);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const action = useAction();
  const isOwn = (token: Token) => token.id === session.token?.id;
  return (
    <>
      {tokens.length > 0 && (
        <ul class="settings-tokens" aria-label="Tokens">
          {tokens.map((token) => (
            <TokenRow
              key={token.id}
              token={token}
              isOwn={isOwn(token)}
              issuer={issuerOf(token, tokens)}
              rotate={() => setRotating(token)}
              revoke={() => {
                action.clear();
                setRevoking(token);
              }}
            />
          ))}
        </ul>
      )}
      {rotating && (
        <RotateDialog
          token={rotating}
          isOwn={isOwn(rotating)}
          close={() => setRotating(null)}
          rotated={(token, former) => {
            setRotating(null);
            shown(token, former);
          }}
        />
      )}
      {revoking && (
        <Confirm
          title={`Revoke ${revoking.name}?`}
          confirm="Revoke"
          action={action}
          close={() => setRevoking(null)}
          work={async () => {
            await call("DELETE /v1/tokens/:id", { params: { id: revoking.id } });
            notify(`${revoking.name} has been revoked.`);
            // Revoking the reader's own token signs the reader out.
            revoked();
          }}
        >
          {isOwn(revoking) && (
            <p class="note">
              <strong>You are signed in with this token.</strong> Revoking it signs you out at once, so have
              another one ready.
            </p>
          )}
          <p>
            Programs that use it are refused from now on, and browsers signed in with it are signed out. A
            revoked token cannot be restored.
          </p>
        </Confirm>
      )}
    </>
  );
}
