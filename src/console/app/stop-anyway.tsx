import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client.ts";
import { ProblemNote } from "../parts/problem.tsx";
import { useAction } from "../state/use-action.ts";

/**
 * A stop button for when the console cannot open. The server accepts a stop even if it cannot write to disk, and the
 * session cookie is enough to send one.
 */
export function StopAnyway(): JSX.Element {
  const [isAsked, setAsked] = useState(false);
  const [isStopped, setStopped] = useState(false);
  const action = useAction();
  async function stop(): Promise<void> {
    await action.run(async () => {
      await call("POST /v1/workspace/stop", {});
      setStopped(true);
    });
  }
  return (
    <div class="stack-small">
      <p class="muted">You can still stop the workspace as long as the server answers.</p>
      <div class="row">
        {!isAsked && (
          <button type="button" onClick={() => setAsked(true)}>
            Stop all …
          </button>
        )}
        {isAsked && !isStopped && (
          <button type="button" class="button-bad" disabled={action.isBusy} onClick={() => void stop()}>
            Stop all agents of the workspace
          </button>
        )}
      </div>
      <p role="status">{isStopped && "The workspace is stopped."}</p>
      <ProblemNote problem={action.problem} />
    </div>
  );
}
