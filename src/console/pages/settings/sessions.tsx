import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { SignedInBrowser } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { Badge } from "../../parts/badge.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { Card } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { Time } from "../../parts/text.tsx";
import { notify } from "../../parts/toast.tsx";
import { useSession } from "../../state/session.tsx";
import { useAction } from "../../state/use-action.ts";
import { usePages } from "../../state/use-pages.ts";
import { useReadAgain } from "./read-again.ts";
import { browserName } from "./user-agent.ts";

const PAGE_SIZE = 100;

/** Console sessions, and a way to end them. */
export function Sessions(): JSX.Element {
  const { signOut } = useSession();
  const [ending, setEnding] = useState<SignedInBrowser | null>(null);
  const action = useAction();
  const sessions = usePages<SignedInBrowser>("sessions", (cursor, signal) =>
    call("GET /v1/sessions", {
      query: { limit: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) },
      signal,
    }),
  );
  // A token's sessions end with it. There is no event for new sessions, so a button reads them again.
  useReadAgain("token.changed", sessions.reload);

  async function end({ id, current }: SignedInBrowser): Promise<void> {
    if (current) return signOut();
    await call("DELETE /v1/sessions/:id", { params: { id } });
    sessions.change((items) => items.filter((item) => item.id !== id));
    notify("The session has ended.");
    return undefined;
  }

  return (
    <Card
      title="Signed in"
      actions={
        <button type="button" class="button-small" disabled={sessions.isLoading} onClick={sessions.reload}>
          Read again
        </button>
      }
    >
      <p class="muted">
        A signed-in browser may do what its token may. It is signed out when the token ends, or after{" "}
        <code>console.session_hours</code>.
      </p>
      <ProblemNote problem={sessions.problem} retry={sessions.reload} />
      {sessions.items.length === 0 && sessions.isLoading && <Loading />}
      <ul class="settings-tokens" aria-label="Sessions">
        {sessions.items.map((item) => (
          <SessionRow
            key={item.id}
            of={item}
            end={() => {
              action.clear();
              setEnding(item);
            }}
          />
        ))}
      </ul>
      {!sessions.isWhole && sessions.items.length > 0 && (
        <div>
          <button type="button" disabled={sessions.isLoading} onClick={sessions.more}>
            Show older sessions
          </button>
        </div>
      )}
      {ending && (
        <Confirm
          title={ending.current ? "Sign out here?" : `Sign out ${ending.person ?? ending.name}?`}
          confirm="Sign out"
          action={action}
          close={() => setEnding(null)}
          work={() => end(ending)}
        >
          <p>
            The browser is signed out at once. Its token stays valid: anyone who has the secret can sign in
            again, unless it is revoked.
          </p>
        </Confirm>
      )}
    </Card>
  );
}

function SessionRow({ of, end }: { readonly of: SignedInBrowser; readonly end: () => void }): JSX.Element {
  return (
    <li class="settings-token settings-session">
      <div class="stack-small">
        <div class="row">
          <h3 class="break">{of.person ?? of.name}</h3>
          {of.current && <Badge tone="info" text="this one" />}
        </div>
        <span class="small muted break">
          {of.person === null ? "The token does not name a person" : `by the token ${of.name}`}
        </span>
      </div>
      <span class="small break" title={of.user_agent ?? undefined}>
        {of.user_agent === null ? "Unknown browser" : browserName(of.user_agent)}
      </span>
      <dl class="facts small">
        <dt>Signed in</dt>
        <dd>
          <Time at={of.created_at} />
        </dd>
        <dt>Last used</dt>
        <dd>
          <Time at={of.last_used_at} />
        </dd>
        <dt>Ends</dt>
        <dd>
          <Time at={of.expires_at} whole />
        </dd>
      </dl>
      <div class="row settings-token-end">
        <button type="button" class="button-small" onClick={end}>
          Sign out<span class="unseen"> {of.person ?? of.name}</span>
        </button>
      </div>
    </li>
  );
}
