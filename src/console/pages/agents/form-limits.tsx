import type { JSX } from "preact";
import { NumberField } from "../../parts/field.tsx";
import { Card } from "../../parts/page.tsx";
import { errorAt } from "./field-errors.ts";
import type { FormPart } from "./form-part.ts";

export function LimitFields({ draft, change, problem }: FormPart): JSX.Element {
  return (
    <Card title="Limits">
      <div class="form-columns">
        <NumberField
          label="Steps of a task"
          required
          min={1}
          max={1_000}
          value={draft.maxSteps}
          change={(maxSteps) => change({ maxSteps })}
          hint="A task fails after this many model calls. From 1 to 1,000."
          error={errorAt(problem, "/max_steps")}
        />
        <NumberField
          label="Credits a day"
          step="any"
          value={draft.creditsPerDay}
          change={(creditsPerDay) => change({ creditsPerDay })}
          placeholder="No budget"
          hint="What it may spend per day (UTC), with up to six decimals. Empty: no budget."
          error={errorAt(problem, "/budget/credits_per_day")}
        />
      </div>
    </Card>
  );
}
