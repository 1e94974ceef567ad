import type { JSX } from "preact";
import { Lines, TextArea, TextField } from "../../parts/field.tsx";
import { Card } from "../../parts/page.tsx";
import { errorAt, errorInList } from "./field-errors.ts";
import type { FormPart } from "./form-part.ts";

/** Name and owner. The name cannot be changed later. */
export function IdentityFields({
  draft,
  change,
  problem,
  isNew,
}: FormPart & { readonly isNew: boolean }): JSX.Element {
  return (
    <Card title="Identity">
      <div class="form-columns">
        {isNew && (
          <TextField
            label="Name"
            required
            value={draft.name}
            change={(name) => change({ name })}
            hint="Lower-case letters, digits, - and _, such as claims-assistant. It cannot be changed: tasks and the ledger refer to it."
            error={errorAt(problem, "/name")}
          />
        )}
        <TextField
          label="Owner"
          required
          value={draft.owner}
          change={(owner) => change({ owner })}
          hint="The person or team accountable for this agent."
          error={errorAt(problem, "/owner")}
        />
      </div>
      <TextArea
        label="Description"
        rows={2}
        value={draft.description}
        change={(description) => change({ description })}
        hint="Its purpose, in a sentence. Shown in lists and to MCP clients."
        error={errorAt(problem, "/description")}
      />
    </Card>
  );
}

export function InstructionFields({ draft, change, problem }: FormPart): JSX.Element {
  return (
    <Card title="Instructions and memory">
      <TextArea
        label="Instructions"
        rows={8}
        value={draft.instructions}
        change={(instructions) => change({ instructions })}
        hint="The system prompt: what the model is told before every task."
        error={errorAt(problem, "/instructions")}
      />
      <Lines
        label="Memory scope"
        required
        rows={3}
        values={draft.memoryScope}
        change={(memoryScope) => change({ memoryScope })}
        hint="The vault documents it can see: these paths and everything below them, one per line, such as legal/contracts. / is the whole workspace."
        error={errorInList(problem, "/memory_scope", draft.memoryScope)}
      />
    </Card>
  );
}
