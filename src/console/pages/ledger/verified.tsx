import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Verdict, Verification, VerificationFinding } from "../../../ledger/proof/verification.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";
import { Facts } from "../../parts/page.tsx";

const WORDS: Readonly<Record<Verdict, readonly [tone: Tone, badge: string, text: string]>> = {
  holds: ["good", "holds", "Everything is consistent, and the signed checkpoint covers all entries."],
  tampered: ["bad", "tampered with", "Something was changed, added or removed."],
  undecided: ["warn", "cannot be decided", "Something needed for the decision is missing."],
};

/** The result of a check. */
export function Verified({ result }: { readonly result: Verification }): JSX.Element {
  const { verdict, findings, facts } = result;
  const [tone, badge, text] = WORDS[verdict];
  const heading = useRef<HTMLHeadingElement>(null);
  // The result appears below the button, so its heading takes the focus for screen readers.
  useEffect(() => heading.current?.focus(), [result]);
  return (
    <section class={`card ledger-verdict ledger-verdict-${tone}`}>
      <div class="row">
        <h2 ref={heading} tabIndex={-1}>
          Result
        </h2>
        <Badge tone={tone} text={badge} />
      </div>
      <p>{text}</p>
      {findings.length > 0 && (
        <ol class="ledger-findings">
          {findings.map((finding, at) => (
            <li key={`${at} ${finding.code}`}>
              <FindingText finding={finding} />
            </li>
          ))}
        </ol>
      )}
      <Facts of={facts.map(({ label, value }) => [label, value] as const)} />
    </section>
  );
}

function FindingText({ finding }: { readonly finding: VerificationFinding }): JSX.Element {
  const { message, code, seq } = finding;
  return (
    <>
      <span class="break">{message}</span> <code class="muted">{code}</code>{" "}
      {seq !== undefined && <a href={`/console/ledger/${seq}`}>Look at entry {seq}</a>}
    </>
  );
}
