import type { JSX } from "preact";
import type { ApiProblem } from "../../api/problem.ts";
import { ProblemNote } from "../../parts/problem.tsx";
import { hasField } from "./field-errors.ts";

/** Why saving failed, or only that it failed if every error is shown at its field. */
export function FormProblem({ problem }: { readonly problem: ApiProblem | null }): JSX.Element | null {
  const paths = problem === null ? [] : [...problem.fields.keys()];
  if (problem === null || paths.length === 0 || !paths.every(hasField))
    return <ProblemNote problem={problem} />;
  return (
    <div class="problem" role="alert">
      <strong>Not saved. Correct the marked fields.</strong>
      <span class="muted small">
        {problem.code}
        {problem.requestId && ` · ${problem.requestId}`}
      </span>
    </div>
  );
}
