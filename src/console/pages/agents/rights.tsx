import type { JSX } from "preact";
import { Lacking as LackingScope } from "../../parts/lacking.tsx";
import { Empty } from "../../parts/page.tsx";
import { useSession } from "../../state/session.tsx";

/** Whether the reader may create, change and archive agents. Tokens that act as an agent may not. */
export function useMayChange(): boolean {
  const { session, can } = useSession();
  return can("agents:write") && session.agent === null;
}

/** Whether the reader may stop and resume agents. */
export function useMayStop(): boolean {
  const { session, can } = useSession();
  return can("approvals:write") && session.agent === null;
}

/** Shown in place of content that the server would refuse. */
export function Lacking({ scope, what }: { readonly scope: string; readonly what: string }): JSX.Element {
  const { session } = useSession();
  if (session.agent === null) return <LackingScope scope={scope} what={what} />;
  return (
    <Empty title={`You may not ${what}`}>
      You are signed in as the agent {session.agent}. Sign in with a token that does not act as an agent.
    </Empty>
  );
}
