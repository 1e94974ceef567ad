import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Agent } from "../../../http/api.ts";
import type { ApiProblem } from "../../api/problem.ts";
import { CloseButton } from "../../parts/dialog.tsx";
import { NumberField, Select, TextArea, TextField } from "../../parts/field.tsx";
import { ProblemNote } from "../../parts/problem.tsx";
import { shortId } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { useAction } from "../../state/use-action.ts";
import { useData } from "../../state/use-data.ts";
import { TaskMessages } from "./asked-card.tsx";
import { Attachments } from "./attachments.tsx";
import { Dispatcher, isSameDraft, requestOf, type TaskDraft } from "./dispatch.ts";
import { MetadataFields } from "./metadata-fields.tsx";
import { SchemaField, schemaOf } from "./schema-field.tsx";
import { ToolsField } from "./tools-field.tsx";

const CODE_FIELDS: Readonly<Record<string, string>> = {
  agent_not_found: "/agent",
  agent_stopped: "/agent",
  unknown_tier: "/tier",
  tier_forbidden: "/tier",
  model_forbidden: "/tier",
  unknown_tool: "/tools",
  tool_forbidden: "/tools",
  task_not_finished: "/continues",
};

/** The fields of a new task. `agents` null: the token may not list agents, so names are typed. */
export function TaskForm({
  agents,
  start,
  tellDirty,
  dispatched,
}: {
  readonly agents: readonly Agent[] | null;
  readonly start: TaskDraft;
  /** Called when the input starts or stops differing from `start`. */
  readonly tellDirty: (isDirty: boolean) => void;
  readonly dispatched: (id: string) => void;
}): JSX.Element {
  const { session, can } = useSession();
  const [draft, setDraft] = useState(start);
  const [first] = useState(start);
  const isDirty = !isSameDraft(draft, first);
  // A layout effect, so that an Escape pressed right after typing also asks.
  useLayoutEffect(() => tellDirty(isDirty), [isDirty, tellDirty]);
  const dispatcher = useRef(new Dispatcher());
  const action = useAction();
  const agent = agents?.find(({ name }) => name === draft.agent) ?? null;
  const tiers = useData("GET /v1/tiers", can("agents:read") ? { query: { limit: 200 } } : null);
  const errorAt = errorsOf(action.problem);
  const schema = draft.schema === null ? undefined : schemaOf(draft.schema);
  const isSchemaWrong = draft.schema !== null && schema === undefined;
  const isAsked = draft.messages !== null || draft.prompt !== "" || draft.attachments.length > 0;
  const change = (changed: Partial<TaskDraft>) => setDraft((before) => ({ ...before, ...changed }));

  async function send(): Promise<void> {
    const made = await action.run(() => dispatcher.current.dispatch(requestOf(draft, schema)));
    if (made) dispatched(made.id);
  }

  const names = (agents ?? []).map(({ name }) => name);
  if (draft.agent !== "" && !names.includes(draft.agent)) names.unshift(draft.agent);
  // Only a task's own agent can continue its conversation.
  const choices = draft.continues === null ? names : [draft.agent];
  return (
    <form
      class="stack task-form"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <div class="form-columns">
        {agents === null ? (
          <TextField
            label="Agent"
            value={draft.agent}
            required
            disabled={session.agent !== null || draft.continues !== null}
            hint={session.agent === null ? undefined : "Your token acts as this agent."}
            error={errorAt("/agent")}
            change={(name) => change({ agent: name })}
          />
        ) : (
          <Select
            label="Agent"
            value={draft.agent}
            options={[
              ["", "Choose an agent …"],
              ...choices.map((name) => [name, agentText(name, agents)] as const),
            ]}
            error={errorAt("/agent")}
            change={(name) => change({ agent: name, tier: "", tools: [] })}
          />
        )}
        {agent ? (
          <Select
            label="Tier"
            value={draft.tier}
            options={[
              ["", "The agent's lowest"],
              ...agent.tier_policy.tiers.map(
                (tier) => [String(tier), tierText(tier, tiers.data?.data)] as const,
              ),
            ]}
            error={errorAt("/tier")}
            change={(tier) => change({ tier })}
          />
        ) : (
          <NumberField
            label="Tier"
            value={draft.tier}
            min={1}
            placeholder="The agent's lowest"
            error={errorAt("/tier")}
            change={(tier) => change({ tier })}
          />
        )}
      </div>
      {draft.continues !== null && (
        <p class={errorAt("/continues") ? "error" : "muted"}>
          {errorAt("/continues") ?? (
            <>
              It continues the conversation of{" "}
              <a href={`/console/tasks/${draft.continues}`}>{shortId(draft.continues)}</a>.
            </>
          )}
        </p>
      )}
      {draft.messages ? (
        <fieldset>
          <legend>Messages</legend>
          <TaskMessages messages={draft.messages} />
          {errorAt("/messages") && <span class="error">{errorAt("/messages")}</span>}
        </fieldset>
      ) : (
        <TextArea
          label="Prompt"
          rows={7}
          required={draft.attachments.length === 0}
          value={draft.prompt}
          error={errorAt("/prompt")}
          change={(prompt) => change({ prompt })}
        />
      )}
      <ToolsField
        agent={agent}
        tools={draft.tools}
        error={errorAt("/tools")}
        change={(tools) => change({ tools })}
      />
      {draft.messages === null && (
        <Attachments
          files={draft.attachments}
          error={errorAt("/messages")}
          change={(attachments) => change({ attachments })}
        />
      )}
      <SchemaField
        text={draft.schema}
        error={isSchemaWrong ? "This is not a JSON object." : errorAt("/output_schema")}
        change={(text) => change({ schema: text })}
      />
      <MetadataFields
        pairs={draft.metadata}
        error={errorAt("/metadata")}
        change={(metadata) => change({ metadata })}
      />
      <ProblemNote problem={action.problem} />
      <div class="dialog-end">
        <CloseButton>Cancel</CloseButton>
        <button
          type="submit"
          class="button-main"
          disabled={action.isBusy || draft.agent === "" || !isAsked || isSchemaWrong}
        >
          Run the task
        </button>
      </div>
    </form>
  );
}

function agentText(name: string, agents: readonly Agent[]): string {
  const status = agents.find((agent) => agent.name === name)?.status;
  return status === "stopped" ? `${name} (stopped)` : name;
}

function tierText(
  tier: number,
  tiers: readonly { tier: number; name: string | null; models: readonly { name: string }[] }[] = [],
): string {
  const known = tiers.find((one) => one.tier === tier);
  if (!known) return String(tier);
  const models = known.models.map(({ name }) => name).join(", ");
  return `${tier}${known.name === null ? "" : ` · ${known.name}`} · ${models}`;
}

/** Errors by field, including errors of the whole request that concern one field. */
function errorsOf(problem: ApiProblem | null): (path: string) => string | undefined {
  return (path) => {
    if (!problem) return undefined;
    for (const [field, message] of problem.fields) {
      if (field === path || field.startsWith(`${path}/`)) return message;
    }
    return CODE_FIELDS[problem.code] === path ? problem.message : undefined;
  };
}
