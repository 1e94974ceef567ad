import type { JSX } from "preact";
import type { AnswerOf } from "../../api/client.ts";
import { Status } from "../../parts/badge.tsx";
import { Code, Json } from "../../parts/code.tsx";
import { durationText } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { type AnswerPart, answerParts, bytesText } from "./answer.ts";
import { AskedLink } from "./asked-link.tsx";

/** The result of a call: the tool's answer, a refusal, or a pending approval. */
export function ToolAnswer({
  answer,
}: {
  readonly answer: AnswerOf<"POST /v1/tools/:name/call">;
}): JSX.Element {
  const { can } = useSession();
  if ("task" in answer) return <AskedLink task={answer.task} />;
  const { status, content, structured_content, duration_ms } = answer;
  const parts = answerParts(content, structured_content);
  return (
    <section class="stack-small" aria-label="Answer">
      <div class="row">
        <h3>Answer</h3>
        <Status status={status} />
        <span class="muted number">{durationText(duration_ms)}</span>
        {can("ledger:read") && <a href="/console/ledger?action=tool.call">In the ledger</a>}
      </div>
      {status === "failed" && (
        <p>
          The call was made and failed; below is why. If the connector could not be reached, refresh it above;
          otherwise check the arguments.
        </p>
      )}
      {parts.length === 0 && <p class="muted">The answer is empty.</p>}
      {parts.map((part, index) => (
        <Part key={index} part={part} label={`Part ${index + 1} of the answer`} />
      ))}
    </section>
  );
}

function Part({ part, label }: { readonly part: AnswerPart; readonly label: string }): JSX.Element {
  switch (part.kind) {
    case "text":
      return <Code text={part.text} label={label} />;
    case "json":
      return <Json value={part.value} label={label} />;
    case "media":
      return (
        <p class="note">
          {part.type}, <span class="number">{bytesText(part.bytes)}</span>: not shown here.
        </p>
      );
    case "link":
      return (
        <div class="stack-small">
          <p class="break">
            {/^https?:\/\//i.test(part.uri) ? (
              <a href={part.uri} rel="noreferrer" target="_blank">
                {part.name}
              </a>
            ) : (
              part.name
            )}
            {part.name !== part.uri && <span class="muted small"> {part.uri}</span>}
          </p>
          {part.text !== null && <Code text={part.text} label={label} />}
        </div>
      );
  }
}
