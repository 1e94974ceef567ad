import type { JSX } from "preact";
import { Card } from "../../../parts/page.tsx";
import { Show } from "../../../parts/problem.tsx";
import { useData } from "../../../state/use-data.ts";
import { LimitForm } from "./limit-form.tsx";
import { PresentUse } from "./present-use.tsx";

/**
 * What the workspace may use, and what it does use now. The feed tells of tasks and requests; of credits it does not, which are
 * read again when the reader asks, or a budget comes to its end.
 */
export function Limits(): JSX.Element {
  const workspace = useData("GET /v1/workspace", {}, ["workspace.changed", "budget.spent"]);
  return (
    <Show of={workspace}>
      {(read) => (
        <div class="settings-sides">
          <Card title="Limits and budget">
            <LimitForm workspace={read} changed={(answer) => workspace.change(() => answer)} />
          </Card>
          <Card title="In use now">
            <PresentUse workspace={read} reload={workspace.reload} isLoading={workspace.isLoading} />
          </Card>
        </div>
      )}
    </Show>
  );
}
