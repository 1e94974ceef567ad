import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { Badge } from "../../parts/badge.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { Card } from "../../parts/page.tsx";
import { ProblemNote } from "../../parts/problem.tsx";
import { countText, plural, Time } from "../../parts/text.tsx";
import { useAction } from "../../state/use-action.ts";
import type { OwnReads } from "./own-reads.ts";
import { type ShownHead, useHead } from "./use-head.ts";
import { useLedgerSize } from "./use-ledger-size.ts";

/** The ledger's size and key, and whether it still begins with what this browser has seen. */
export function Head({ ownReads }: { readonly ownReads: OwnReads }): JSX.Element {
  const head = useHead(ownReads);
  const told = useLedgerSize();
  const signed = head.judgement?.signed ?? null;
  const checkpoint = signed?.checkpoint ?? null;
  const size = Math.max(told, checkpoint?.size ?? 0);
  return (
    <Card>
      <h2 class="unseen">State of the ledger</h2>
      <ProblemNote problem={head.problem} retry={head.reload} />
      <dl class="ledger-head">
        <Stat name="Entries">
          <strong class="number ledger-size">{size === 0 ? "…" : countText(size)}</strong>
        </Stat>
        <Stat name="Checkpoint">
          {signed === null ? (
            <Reading />
          ) : (
            <>
              <span class="row">
                <SignedBadge verdict={signed.verdict} />
                <Time at={head.at} />
              </span>
              <span class="break">{checkpoint?.origin}</span>
              {signed.verdict !== "good" && <span>{signed.reason}</span>}
            </>
          )}
        </Stat>
        <Stat name="Signing key">
          {signed?.verdict === "good" ? (
            <>
              <code class="break">{signed.key.keyId.toHex()}</code>
              <span class="muted small">
                {head.judgement?.isSameKey === false
                  ? "A different key from the one that this browser saw before. “Verify in this browser” checks whether the previous key vouches for it."
                  : "Ed25519. Compare it with the operator's output of: gatehouse ledger key"}
              </span>
            </>
          ) : (
            <span class="muted">{signed === null ? "…" : "signature not verified"}</span>
          )}
        </Stat>
        <Stat name="Seen before">
          <SeenBefore head={head} />
        </Stat>
      </dl>
    </Card>
  );
}

function Stat({
  name,
  children,
}: {
  readonly name: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="stack-small">
      <dt class="muted small">{name}</dt>
      <dd class="stack-small">{children}</dd>
    </div>
  );
}

function Reading(): JSX.Element {
  return <span class="muted">Reading …</span>;
}

function SignedBadge({ verdict }: { readonly verdict: "good" | "bad" | "undecided" }): JSX.Element {
  if (verdict === "good") return <Badge tone="good" text="signature good" />;
  if (verdict === "bad") return <Badge tone="bad" text="invalid signature" />;
  return <Badge tone="warn" text="not checked" />;
}

/** Whether the ledger contains what this browser saw earlier. Only someone who kept a checkpoint can tell. */
function SeenBefore({ head }: { readonly head: ShownHead }): JSX.Element {
  const { seen, seenSize, judgement, isShorter } = head;
  const sawThen = seen && (
    <span class="small">
      This browser saw {plural(seenSize, "entry", "entries")} on <Time at={seen.at} whole />.
    </span>
  );
  if (isShorter) {
    return (
      <Rewritten head={head} saw={sawThen}>
        The ledger has fewer entries now: some were removed, or the server runs on an older copy of its data.
      </Rewritten>
    );
  }
  if (judgement === null) return <Reading />;
  if (judgement.growth === "another") {
    return (
      <Rewritten head={head} saw={sawThen}>
        This is a different ledger, with a different name.
      </Rewritten>
    );
  }
  if (judgement.growth === "rewritten") {
    return (
      <Rewritten head={head} saw={sawThen}>
        Today’s ledger does not begin with them: entries were changed, added or removed.
      </Rewritten>
    );
  }
  if (judgement.growth === "first" || seen === null) {
    return (
      <span class="muted small">
        {judgement.signed.verdict === "good"
          ? "This browser sees the ledger for the first time. It keeps the checkpoint to compare on your next visit."
          : "An invalid checkpoint is not kept."}
      </span>
    );
  }
  return (
    <>
      <span>
        <Badge tone={judgement.signed.verdict === "good" ? "good" : "warn"} text="nothing rewritten" />
      </span>
      {sawThen}
      <span class="muted small">Today’s ledger begins with them: proven by this browser.</span>
    </>
  );
}

function Rewritten({
  head,
  saw,
  children,
}: {
  readonly head: ShownHead;
  readonly saw: ComponentChildren;
  readonly children: ComponentChildren;
}): JSX.Element {
  const [isAsked, setAsked] = useState(false);
  const action = useAction();
  return (
    <div class="stack-small" role="alert">
      <span>
        <Badge tone="bad" text="changed since last visit" />
      </span>
      {saw}
      <span>{children}</span>
      <span class="muted small">
        Ask the server's operator. If its data was restored from a backup, later entries are gone.
      </span>
      <span>
        <button type="button" class="button-small" onClick={() => setAsked(true)}>
          Forget earlier visits …
        </button>
      </span>
      {isAsked && (
        <Confirm
          title="Forget what this browser has seen of the ledger?"
          confirm="Forget it"
          action={action}
          close={() => setAsked(false)}
          work={async () => head.forget()}
        >
          <p>
            The signed checkpoint that this browser keeps is evidence of the ledger's earlier state. Copy it
            first, if you may need it: nobody else may have it.
          </p>
          <pre class="ledger-note">{head.seen?.note}</pre>
        </Confirm>
      )}
    </div>
  );
}
