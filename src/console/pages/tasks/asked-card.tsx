import type { JSX } from "preact";
import type { Task } from "../../../http/api.ts";
import { Code, Json } from "../../parts/code.tsx";
import { Card } from "../../parts/page.tsx";
import { bytesText } from "../connectors/answer.ts";
import { documentAddress } from "../vault/address.ts";
import { partsOf, type TaskMessage, type TaskPart } from "./asked.ts";

/** A task's input: its prompt or messages, and the schema of its output. */
export function AskedCard({ task }: { readonly task: Task }): JSX.Element {
  const { prompt, messages, output_schema: schema } = task;
  return (
    <>
      <Card title={messages ? "Messages" : "Prompt"}>
        {messages && <TaskMessages messages={messages} />}
        {prompt !== null && <Code text={prompt} label="Prompt" />}
        {prompt === null && !messages && (
          <p class="muted">It was erased, or its retention period has ended.</p>
        )}
      </Card>
      {schema && (
        <Card title="Output schema">
          <Json value={schema} label="Output schema" />
        </Card>
      )}
    </>
  );
}

/** The messages of a task, in their order. */
export function TaskMessages({ messages }: { readonly messages: readonly TaskMessage[] }): JSX.Element {
  return (
    <ol class="task-messages">
      {messages.map((message, index) => (
        <li key={index}>
          <h3 class="small">{message.role === "user" ? "User" : "Assistant"}</h3>
          {partsOf(message).map((part, at) => (
            <Part key={at} part={part} label={`Message ${index + 1}, part ${at + 1}`} />
          ))}
        </li>
      ))}
    </ol>
  );
}

function Part({ part, label }: { readonly part: TaskPart; readonly label: string }): JSX.Element {
  if ("text" in part) return <Code text={part.text} label={label} />;
  if ("document" in part) {
    return (
      <p>
        Document <a href={documentAddress(part.document)}>{part.document}</a>
      </p>
    );
  }
  const size = "data" in part ? sizeOf(part.data) : part.size;
  return (
    <p>
      {part.type === "image" ? "Image" : "File"}: {part.media_type},{" "}
      <span class="number">{bytesText(size)}</span>
    </p>
  );
}

/** Base64 turns three bytes into four characters, the last two of which may be padding. */
function sizeOf(data: string): number {
  const filling = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  return (data.length / 4) * 3 - filling;
}
