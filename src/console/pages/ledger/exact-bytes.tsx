import type { JSX } from "preact";
import { fromBase64 } from "../../../ledger/proof/note.ts";
import { Code } from "../../parts/code.tsx";
import { Card } from "../../parts/page.tsx";
import { plural } from "../../parts/text.tsx";
import type { EntryAnswer } from "./check-entry.ts";

/** The hashed bytes: JSON with sorted keys and without spaces (RFC 8785). */
export function ExactBytes({
  entry: { bytes: encoded, leaf },
}: {
  readonly entry: EntryAnswer;
}): JSX.Element {
  const bytes = fromBase64(encoded);
  return (
    <Card title="Exact bytes">
      {bytes ? (
        <Code label="The entry's exact bytes" text={new TextDecoder().decode(bytes)} />
      ) : (
        <p class="problem">The server's answer is not valid base64.</p>
      )}
      <p class="muted small">
        {bytes && `${plural(bytes.length, "byte")} of UTF-8. `}
        The entry’s leaf hash is the SHA-256 of a zero byte followed by these bytes.
      </p>
      <div class="stack-small">
        <h3>Leaf</h3>
        <code class="break">{leaf}</code>
      </div>
    </Card>
  );
}
