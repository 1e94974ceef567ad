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
        title="No document lies here"
        action={
          <div class="row">
            {add}
            <a class="button" href={VAULT}>
              All documents
            </a>
          </div>
        }
      >
        There is none in <code class="break">{scope}</code> or below it that you may see.
      </Empty>
    );
  }
  return (
    <Empty title="The vault is empty" action={add ?? undefined}>
      Put in what your agents are to know: text, Markdown, HTML, PDF, Word, CSV or JSON. Each document lies in
      a scope such as <code>support</code> or <code>legal/contracts</code>, and an agent finds those in its
      own memory scope alone.{" "}
      {add ? (
        <>Drop files anywhere on this page, or whole folders by </>
      ) : (
        <>Adding some takes a token with the scope vault:write; on the command line it is </>
      )}
      <code>gatehouse vault add</code>.
    </Empty>
  );
}
