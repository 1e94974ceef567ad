import type { ComponentChildren, JSX } from "preact";
import { Status } from "../../parts/badge.tsx";
import { Code, CopyButton } from "../../parts/code.tsx";
import { Card, Facts } from "../../parts/page.tsx";
import { Show } from "../../parts/problem.tsx";
import { useSession } from "../../state/session.tsx";
import { useWorkspaceStatus } from "../../state/usage.ts";
import { useData } from "../../state/use-data.ts";

/** The server's version, its addresses, and the key that verifies its ledger. */
export function About(): JSX.Element {
  const { session, can } = useSession();
  const document = useData("GET /openapi.json", {});
  return (
    <div class="grid">
      <Card title="This server">
        <Facts
          of={[
            ["Version", document.data ? document.data.info.version : "…"],
            ["Workspace", session.workspace],
            ["REST", <Address key="rest" of={`${location.origin}/v1`} />],
            ["MCP", <Address key="mcp" of={`${location.origin}/mcp`} />],
            [
              "Reference",
              <a key="docs" href="/docs" target="_blank" rel="noreferrer">
                All routes and their fields
              </a>,
            ],
            [
              "OpenAPI",
              <a key="openapi" href="/openapi.json" target="_blank" rel="noreferrer">
                openapi.json
              </a>,
            ],
          ]}
        />
        <p class="small muted">This console uses only this API: a program can do everything it does.</p>
      </Card>
      <StopCard />
      {can("ledger:read") && <KeyCard />}
    </div>
  );
}

function Address({ of }: { readonly of: string }): JSX.Element {
  return (
    <span class="row">
      <code class="break">{of}</code>
      <CopyButton text={of} />
    </span>
  );
}

function StopCard(): JSX.Element {
  const { session, can } = useSession();
  const status = useWorkspaceStatus();
  const mayStop = can("approvals:write") && session.agent === null;
  return (
    <Card title="Stopping everything">
      {status !== null && <Facts of={[["Now", <Status key="status" status={status} />]]} />}
      <Sentence>
        <strong>Stop all</strong>, at the top of every page, cancels all running, waiting and queued tasks of
        the workspace, aborts calls in progress, and refuses new ones until somebody resumes it. It works even
        if the disk is full.
      </Sentence>
      <Sentence>
        <strong>Resume</strong> lets agents accept new tasks. Cancelled tasks are not restored, and agents
        stopped individually stay stopped.
      </Sentence>
      <p class="small muted">
        {mayStop
          ? "Both are recorded with your name."
          : "Your token may do neither: it needs the scope approvals:write and must not act as an agent."}
      </p>
    </Card>
  );
}

function Sentence({ children }: { readonly children: ComponentChildren }): JSX.Element {
  return <p>{children}</p>;
}

function KeyCard(): JSX.Element {
  const key = useData("GET /v1/ledger/key", {});
  return (
    <Card title="The ledger's key">
      <p>
        With this line, anyone can verify every checkpoint, proof and export of this workspace's ledger
        without this server. Keep a copy elsewhere, for <code>gatehouse ledger verify --key</code>.
      </p>
      <Show of={key}>{({ vkey }) => <Code label="Verifier key" text={vkey} />}</Show>
    </Card>
  );
}
