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
            hint="Small letters, digits, - and _, such as claims-assistant. It stays for good: tasks and the ledger refer to it."
            error={errorAt(problem, "/name")}
          />
        )}
        <TextField
          label="Owner"
          required
          value={draft.owner}
          change={(owner) => change({ owner })}
          hint="The person or team who answers for this agent."
          error={errorAt(problem, "/owner")}
        />
      </div>
      <TextArea
        label="Description"
        rows={2}
        value={draft.description}
        change={(description) => change({ description })}
        hint="What it is for, in a sentence. Shown in lists, and to clients over MCP."
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
        hint="Which documents of the vault it sees: these paths and everything below them, one a line, such as legal/contracts. / is the whole workspace."
        error={errorInList(problem, "/memory_scope", draft.memoryScope)}
      />
    </Card>
  );
}
