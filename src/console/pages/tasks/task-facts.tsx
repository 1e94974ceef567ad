import type { JSX } from "preact";
import type { Task } from "../../../http/api.ts";
import { Actor } from "../../parts/actor.tsx";
import { Card, Facts } from "../../parts/page.tsx";
import { countText, creditsText, Lasting, shortId, Time } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { isFinal } from "./final.ts";

export function TaskFacts({ task }: { readonly task: Task }): JSX.Element {
  const { can } = useSession();
  const { usage } = task;
  const metadata = Object.entries(task.metadata);
  return (
    <div class="stack">
      <Card title="Facts">
        <Facts
          of={[
            [
              "Agent",
              can("agents:read") ? (
                <a key="agent" href={`/console/agents/${task.agent}`}>
                  {task.agent}
                </a>
              ) : (
                task.agent
              ),
            ],
            ["Tier", String(task.tier)],
            ...(task.continues === undefined
              ? []
              : [
                  [
                    "Continues",
                    <a key="continues" href={`/console/tasks/${task.continues}`}>
                      {shortId(task.continues)}
                    </a>,
                  ] as const,
                ]),
            ["Model", task.model ?? "None yet"],
            [
              "Credits",
              <span key="credits" class="number">
                {creditsText(task.credits_consumed)}
              </span>,
            ],
            [
              "Tokens",
              isFinal(task.status) ? (
                <span key="tokens" class="number">
                  {countText(usage.input_tokens)} in, {countText(usage.output_tokens)} out
                </span>
              ) : (
                "Known once it ends"
              ),
            ],
            [
              "Steps",
              <span key="steps" class="number">
                {countText(usage.steps)}
              </span>,
            ],
            ["Created by", <Actor key="by" of={task.created_by} />],
            ["Created", <Time key="created" at={task.created_at} whole />],
            ["Started", <Time key="started" at={task.started_at} whole />],
            ["Finished", <Time key="finished" at={task.finished_at} whole />],
            ["Duration", <Lasting key="took" from={task.started_at} to={task.finished_at} />],
            ["Id", <code key="id">{task.id}</code>],
          ]}
        />
      </Card>
      <Card title="Tools it may call">
        {task.tools.length === 0 ? (
          <p class="muted">None</p>
        ) : (
          <div class="row">
            {task.tools.map((tool) => (
              <span key={tool} class="chip">
                {tool}
              </span>
            ))}
          </div>
        )}
      </Card>
      {metadata.length > 0 && (
        <Card title="Metadata">
          <Facts of={metadata} />
        </Card>
      )}
    </div>
  );
}
