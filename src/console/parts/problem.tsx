import type { JSX } from "preact";
import { type ApiProblem, adviceFor } from "../api/problem.ts";
import type { Loaded } from "../state/use-data.ts";

/** What went wrong, and what to do about it. */
export function ProblemNote({
  problem,
  retry,
}: {
  readonly problem: ApiProblem | null;
  readonly retry?: () => void;
}): JSX.Element | null {
  if (!problem) return null;
  const advice = adviceFor(problem);
  return (
    <div class="problem" role="alert">
      <strong>{problem.message}</strong>
      {problem.fields.size > 0 && (
        <ul>
          {[...problem.fields].map(([path, message]) => (
            <li key={path}>
              <code>{path}</code> {message}
            </li>
          ))}
        </ul>
      )}
      {advice && <span>{advice}</span>}
      <span class="muted small">
        {problem.code}
        {problem.requestId && ` · ${problem.requestId}`}
      </span>
      {retry && (
        <span>
          <button type="button" class="button-small" onClick={retry}>
            Try again
          </button>
        </span>
      )}
    </div>
  );
}

/** Shows loaded data; before that, a loading note or the reason why loading failed. */
export function Show<Value>({
  of: { data, problem, reload },
  children,
}: {
  readonly of: Loaded<Value>;
  readonly children: (value: Value) => JSX.Element | null;
}): JSX.Element {
  return (
    <>
      <ProblemNote problem={problem} retry={reload} />
      {data !== undefined ? children(data) : !problem && <Loading />}
    </>
  );
}

export function Loading(): JSX.Element {
  return (
    <p class="loading" role="status">
      Loading …
    </p>
  );
}
