import type { JSX } from "preact";
import { Badge } from "../../parts/badge.tsx";
import { Code } from "../../parts/code.tsx";
import { Card, Facts } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { countText, plural, Time } from "../../parts/text.tsx";
import { doesHold, type EntryAnswer, type EntryCheck } from "./check-entry.ts";
import { ProofDrawing } from "./proof-drawing.tsx";
import { ProofTable } from "./proof-table.tsx";
import { useProof } from "./use-proof.ts";

/** The proof that the ledger contains an entry, recomputed by this browser and drawn. */
export function Proof({ seq, entry }: { readonly seq: number; readonly entry: EntryAnswer }): JSX.Element {
  const { check, note, at, problem, reload } = useProof(seq, entry);
  return (
    <>
      <ProblemNote problem={problem} retry={reload} />
      {check === null ? (
        problem === null && <Loading />
      ) : (
        <div class="grid ledger-proof">
          <div class="stack">
            <Card title="Proof">
              <Verdict check={check} seq={seq} />
              <Checks check={check} seq={seq} />
            </Card>
            <CheckpointCard check={check} note={note} at={at} />
          </div>
          <Card title="Path to the root">
            <p class="muted small">
              From the entry’s leaf at the bottom to the signed root. Each hash on the path is computed here
              from the two below it; the siblings come from the server.
            </p>
            <ProofDrawing check={check} />
          </Card>
          <ProofTable check={check} />
        </div>
      )}
    </>
  );
}

function Verdict({ check, seq }: { readonly check: EntryCheck; readonly seq: number }): JSX.Element {
  if (doesHold(check)) {
    return (
      <p class="row">
        <Badge tone="good" text="holds" />
        <span>
          Entry {countText(seq)} is in the signed ledger of{" "}
          {plural(check.signed.checkpoint?.size ?? 0, "entry", "entries")}.
        </span>
      </p>
    );
  }
  if (check.signed.verdict === "undecided") {
    return (
      <p class="row">
        <Badge tone="warn" text="cannot be decided" />
        <span>{check.signed.reason}</span>
      </p>
    );
  }
  return (
    <p class="row" role="alert">
      <Badge tone="bad" text="broken" />
      <span>The server’s statements about this entry contradict each other.</span>
    </p>
  );
}

function Checks({ check, seq }: { readonly check: EntryCheck; readonly seq: number }): JSX.Element {
  const { wrong, steps, isRootSigned, signed } = check;
  return (
    <ol class="proof-checks">
      <Line
        isGood={wrong.length === 0}
        text={`The bytes belong to entry ${countText(seq)} and match its leaf hash.`}
      >
        {wrong}
      </Line>
      <Line
        isGood={isRootSigned}
        text={
          steps.length === 0
            ? "The leaf is the tree's root."
            : `The root of the checkpoint is ${plural(steps.length, "step")} up the tree.`
        }
      >
        {isRootSigned ? [] : ["The hashes lead to a different root from the checkpoint's."]}
      </Line>
      <Line isGood={signed.verdict === "good"} text="The checkpoint is signed by the ledger’s key.">
        {signed.verdict === "good" ? [] : [signed.reason]}
      </Line>
    </ol>
  );
}

function Line({
  isGood,
  text,
  children,
}: {
  readonly isGood: boolean;
  readonly text: string;
  readonly children: readonly string[];
}): JSX.Element {
  return (
    <li data-good={isGood}>
      <span class="proof-mark" aria-hidden="true">
        {isGood ? "✓" : "✕"}
      </span>
      <div class="stack-small">
        <span>
          <span class="unseen">{isGood ? "Match: " : "Mismatch: "}</span>
          {text}
        </span>
        {children.map((reason) => (
          <span key={reason} class="proof-wrong break">
            {reason}
          </span>
        ))}
      </div>
    </li>
  );
}

function CheckpointCard({
  check: { signed },
  note,
  at,
}: {
  readonly check: EntryCheck;
  readonly note: string;
  readonly at: string;
}): JSX.Element {
  const { checkpoint } = signed;
  return (
    <Card title="Checkpoint">
      <Facts
        of={[
          ["Ledger", checkpoint?.origin ?? "Could not be read"],
          checkpoint && ["Entries", <span class="number">{countText(checkpoint.size)}</span>],
          checkpoint && ["Root", <code>{checkpoint.root.toHex()}</code>],
          [
            "Signed",
            <>
              at the request of this page, <Time at={at} whole />
            </>,
          ],
          signed.verdict === "good"
            ? ["By the key", <code>{signed.key.keyId.toHex()}</code>]
            : ["Signature", signed.reason],
        ]}
      />
      <Code label="The checkpoint, a signed note" text={note} />
      <p class="muted small">
        To see whether this ledger still contains what this browser saw before, open{" "}
        <a href="/console/ledger">the ledger’s page</a>.
      </p>
    </Card>
  );
}
