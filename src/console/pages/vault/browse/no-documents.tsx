import type { JSX } from "preact";
import { Empty } from "../../../parts/page.tsx";
import { VAULT } from "../address.ts";

export function NoDocuments({
  scope,
  add,
}: {
  readonly scope: string;
  readonly add: JSX.Element | null;
}): JSX.Element {
  if (scope !== "") {
    return (
      <Empty
        title="No documents here"
        action={
          <div class="row">
            {add}
            <a class="button" href={VAULT}>
              All documents
            </a>
          </div>
        }
      >
        There are no documents in <code class="break">{scope}</code> or below it that you may see.
      </Empty>
    );
  }
  return (
    <Empty title="The vault is empty" action={add ?? undefined}>
      Add what your agents should know: text, Markdown, HTML, PDF, Word, CSV or JSON. Each document has a
      scope such as <code>support</code> or <code>legal/contracts</code>, and an agent finds only those in its
      memory scope.{" "}
      {add ? (
        <>Drop files anywhere on this page, or add whole folders with </>
      ) : (
        <>To add documents, you need the scope vault:write; on the command line, use </>
      )}
      <code>gatehouse vault add</code>.
    </Empty>
  );
}
