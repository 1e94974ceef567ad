import type { JSX } from "preact";
import { Card } from "../../parts/page.tsx";
import { useSession } from "../../state/session.tsx";
import { useData } from "../../state/use-data.ts";

/** A checklist for a new workspace. */
export function FirstSteps({
  hasAgent,
  hasTask,
}: {
  readonly hasAgent: boolean;
  readonly hasTask: boolean;
}): JSX.Element {
  const { can } = useSession();
  const connectors = useData(
    "GET /v1/connectors",
    can("connectors:read") ? { query: { limit: 200 } } : null,
    ["connector.changed"],
  );
  const documents = useData("GET /v1/vault/documents", can("vault:read") ? { query: { limit: 1 } } : null, [
    "document.changed",
  ]);
  const hasTool = connectors.data?.data.some(({ kind }) => kind !== "builtin") === true;
  const hasDocument = (documents.data?.data.length ?? 0) > 0;
  return (
    <Card title="First steps">
      <ol class="steps">
        <Step
          isDone={hasAgent}
          title="Create an agent"
          text="A named worker, with the documents it may see, the models and tools it may use, and its budget."
          links={can("agents:write") ? [["/console/agents/-/new", "Create an agent"]] : []}
          scope="agents:write"
        />
        <Step
          isDone={hasTask}
          title="Run a task"
          text="Give the agent a task and watch each step. The built-in model needs no key."
          links={can("tasks:write") ? [["/console/tasks?new", "Run a task"]] : []}
          scope="tasks:write"
        />
        <Step
          isDone={hasTool || hasDocument}
          title="Connect a tool, or upload a document"
          text="Tools come from MCP servers and HTTP APIs. Agents answer from documents in the vault."
          links={[
            ...(can("connectors:write") ? ([["/console/connectors/-/new", "Connect a tool"]] as const) : []),
            ...(can("vault:write") ? ([["/console/vault", "Upload a document"]] as const) : []),
          ]}
          scope="connectors:write or vault:write"
        />
      </ol>
    </Card>
  );
}

function Step({
  isDone,
  title,
  text,
  links,
  scope,
}: {
  readonly isDone: boolean;
  readonly title: string;
  readonly text: string;
  /** Pairs of address and label; empty if the user may not take this step. */
  readonly links: readonly (readonly [string, string])[];
  /** The scope needed. */
  readonly scope: string;
}): JSX.Element {
  return (
    <li class="step" data-done={isDone}>
      <span class="step-mark" aria-hidden="true">
        {isDone && (
          <svg viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="2.25" aria-hidden="true">
            <path d="M3.5 8.5l3 3 6-7" />
          </svg>
        )}
      </span>
      <div class="stack-small grow">
        <h3>
          {title}
          <span class="unseen">{isDone ? ": done" : ": to do"}</span>
        </h3>
        <p class="muted">{text}</p>
        {links.length > 0 ? (
          <div class="row">
            {links.map(([href, name]) => (
              <a key={href} class="button button-small" href={href}>
                {name}
              </a>
            ))}
          </div>
        ) : (
          !isDone && <p class="muted small">You need a token with {scope}.</p>
        )}
      </div>
    </li>
  );
}
