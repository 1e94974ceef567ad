import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Verification } from "../../../ledger/proof/verification.ts";
import { Check, TextArea } from "../../parts/field.tsx";
import { Card } from "../../parts/page.tsx";
import { ProblemNote } from "../../parts/problem.tsx";
import { countText, plural, Time } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { useAction } from "../../state/use-action.ts";
import type { LedgerFilter } from "./filters.ts";
import { seenCheckpoint } from "./judge-head.ts";
import { zoneName } from "./local-time.ts";
import { TimeField } from "./period-fields.tsx";
import { readRememberedHead } from "./remembered-head.ts";
import { parseKeys, parsePasted, refusal, runVerify, type VerifyProgress } from "./run-verify.ts";
import { Verified } from "./verified.tsx";
import { WhatItShows } from "./what-it-shows.tsx";

/** Verifies the ledger or a period of it in the browser. */
export function VerifyTab({ filter }: { readonly filter: LedgerFilter }): JSX.Element {
  const { workspace } = useSession().session;
  const [from, setFrom] = useState(filter.from);
  const [to, setTo] = useState(filter.to);
  const [keys, setKeys] = useState("");
  const [checkpoints, setCheckpoints] = useState("");
  const [seen] = useState(() => readRememberedHead(workspace));
  const seenHead = seen && seenCheckpoint(seen);
  const [usesSeen, setUsesSeen] = useState(seenHead !== null);
  const [progress, setProgress] = useState<VerifyProgress | null>(null);
  const [result, setResult] = useState<Verification | null>(null);
  const action = useAction();
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const [wrongKeys, wrongCheckpoints] = [refusal(parseKeys, keys), refusal(parsePasted, checkpoints)];

  async function verify(): Promise<void> {
    const controller = new AbortController();
    abort.current = controller;
    setResult(null);
    setProgress({ step: "downloading", bytes: 0 });
    await action.run(async () => {
      const known = usesSeen && seen ? parsePasted(seen.note) : [];
      const trust = { keys: parseKeys(keys), checkpoints: [...parsePasted(checkpoints), ...known] };
      try {
        setResult(await runVerify({ from, to, trust }, setProgress, controller.signal));
      } catch (error) {
        if (!controller.signal.aborted) throw error;
      }
    });
    setProgress(null);
  }

  return (
    <div class="grid ledger-columns">
      <div class="stack">
        <Card title="Verify in this browser">
          <form
            class="form"
            noValidate
            onSubmit={(event) => {
              event.preventDefault();
              void verify();
            }}
          >
            <div class="form-columns">
              <TimeField
                label="From"
                value={from}
                change={setFrom}
                error={action.problem?.fields.get("/from")}
              />
              <TimeField
                label="To (before)"
                value={to}
                change={setTo}
                error={action.problem?.fields.get("/to")}
              />
            </div>
            <p class="muted small">
              Without dates, the whole ledger is verified. Times are in your zone, {zoneName()}.
            </p>
            {seen && seenHead && (
              <Check
                label={`Compare with the ${plural(seenHead.size, "entry", "entries")} that this browser saw`}
                hint={
                  <>
                    Seen on <Time at={seen.at} whole />.
                  </>
                }
                checked={usesSeen}
                change={setUsesSeen}
              />
            )}
            <details class="ledger-known">
              <summary>What you know from elsewhere: the key, earlier checkpoints</summary>
              <div class="stack">
                <TextArea
                  label="Verifier keys, one per line"
                  hint="As printed by gatehouse ledger key. Without one, the key in the bundle is trusted."
                  isCode
                  rows={2}
                  value={keys}
                  change={setKeys}
                  error={wrongKeys}
                />
                <TextArea
                  label="Checkpoints, one after another"
                  hint="Signed notes from your checkpoint file or webhook."
                  isCode
                  rows={5}
                  value={checkpoints}
                  change={setCheckpoints}
                  error={wrongCheckpoints}
                />
              </div>
            </details>
            <div class="row">
              <button
                type="submit"
                class="button-main"
                disabled={action.isBusy || wrongKeys !== undefined || wrongCheckpoints !== undefined}
              >
                Verify
              </button>
              {action.isBusy && (
                <button type="button" onClick={() => abort.current?.abort()}>
                  Stop
                </button>
              )}
              <Progress of={progress} />
            </div>
          </form>
        </Card>
        <ProblemNote problem={action.problem} />
        {result && <Verified result={result} />}
      </div>
      <WhatItShows />
    </div>
  );
}

function Progress({ of }: { readonly of: VerifyProgress | null }): JSX.Element {
  return (
    <span class="muted" role="status">
      {of?.step === "downloading" && `Downloading the bundle: ${sizeText(of.bytes)} …`}
      {of?.step === "checking" && `Checking ${sizeText(of.bytes)}: ${countText(of.leaves)} entries hashed …`}
    </span>
  );
}

function sizeText(bytes: number): string {
  return bytes < 1_000_000
    ? `${countText(Math.ceil(bytes / 1_000))} kB`
    : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
