import type { JSX } from "preact";
import { Card } from "../../../parts/page.tsx";
import { Show } from "../../../parts/problem.tsx";
import { useData } from "../../../state/use-data.ts";
import { LimitForm } from "./limit-form.tsx";
import { PresentUse } from "./present-use.tsx";

/**
 * The workspace's limits and its current usage. The feed reports tasks and requests but not credits, which are read
 * again on request and when a budget runs out.
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
