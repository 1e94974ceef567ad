import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { LedgerEntry } from "../../../http/api.ts";
import { type AnswerOf, call } from "../../api/client.ts";
import { type ApiProblem, asProblem } from "../../api/problem.ts";
import { Code } from "../../parts/code.tsx";
import { Card } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { countText } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { isClientCall } from "../calls/client-calls.ts";

type Texts = AnswerOf<"GET /v1/ledger/:seq/payload">;

/**
 * The prompt in an intent of a client's model call, or the answer in its outcome. Read only on request, because
 * reading somebody's text is recorded.
 */
export function CallTexts({ entry }: { readonly entry: LedgerEntry }): JSX.Element | null {
  const kind = entry.input_hash === null ? "output" : "input";
  if (!isClientCall(entry) || (entry.input_hash === null && entry.output_hash === null)) return null;
  return <Text seq={entry.seq} kind={kind} />;
}

function Text({ seq, kind }: { readonly seq: number; readonly kind: "input" | "output" }): JSX.Element {
  const { can } = useSession();
  const [texts, setTexts] = useState<Texts | null>(null);
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const [isLoading, setLoading] = useState(false);
  const name = kind === "input" ? "Prompt" : "Answer";
  const read = async () => {
    setLoading(true);
    setProblem(null);
    try {
      setTexts(await call("GET /v1/ledger/:seq/payload", { params: { seq: String(seq) } }));
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setLoading(false);
    }
  };
  return (
    <Card title={name}>
      <ProblemNote problem={problem} />
      {texts === null ? (
        isLoading ? (
          <Loading />
        ) : can("tasks:read") ? (
          <div class="row">
            <button type="button" class="button-small" onClick={() => void read()}>
              Show the {name.toLowerCase()}
            </button>
            <span class="muted small">Reading it is recorded.</span>
          </div>
        ) : (
          <p class="muted">
            To read it, you need the scope <code>tasks:read</code>.
          </p>
        )
      ) : (
        <Shown text={texts[kind]} label={name} />
      )}
    </Card>
  );
}

function Shown({ text, label }: { readonly text: Texts["input"]; readonly label: string }): JSX.Element {
  if (text === null) {
    return <p class="muted">It was erased. Its hash stays in the entry.</p>;
  }
  const isCut = text.text.length < text.characters;
  return (
    <>
      <Code label={label} text={indented(text.text, isCut)} />
      {isCut && (
        <p class="muted small">
          The first {countText(text.text.length)} of {countText(text.characters)} characters.
        </p>
      )}
    </>
  );
}

/** JSON is easier to read with line breaks. Events of a stream and truncated text stay as they are. */
function indented(text: string, isCut: boolean): string {
  if (isCut) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
