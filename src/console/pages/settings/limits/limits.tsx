import type { JSX } from "preact";
import { Card } from "../../../parts/page.tsx";
import { Show } from "../../../parts/problem.tsx";
import { useData } from "../../../state/use-data.ts";
import { LimitForm } from "./limit-form.tsx";
import { PresentUse } from "./present-use.tsx";

/** What the workspace may use, and what it does use now. */
export function Limits(): JSX.Element {
  const workspace = useData("GET /v1/workspace", {}, ["workspace.changed", "task.changed"]);
  return (
    <Show of={workspace}>
      {(read) => (
        <div class="settings-sides">
          <Card title="Limits and budget">
            <LimitForm workspace={read} changed={(answer) => workspace.change(() => answer)} />
          </Card>
          <Card title="In use now">
            <PresentUse workspace={read} />
          </Card>
        </div>
      )}
    </Show>
  );
}
