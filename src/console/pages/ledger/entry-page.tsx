import type { JSX } from "preact";
import { useRoute } from "preact-iso";
import { Status } from "../../parts/badge.tsx";
import { Json } from "../../parts/code.tsx";
import { Card, Empty, Page } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { countText } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { type Loaded, useData } from "../../state/use-data.ts";
import { CallTexts } from "./call-texts.tsx";
import type { EntryAnswer } from "./check-entry.ts";
import { EntryFields } from "./entry-fields.tsx";
import { EntryPair } from "./entry-pair.tsx";
import { sentenceOf } from "./entry-words.ts";
import { ExactBytes } from "./exact-bytes.tsx";
import { NotReadable } from "./ledger.tsx";
import { Proof } from "./proof.tsx";

/** An entry: its content, its other half, and the proof that the ledger contains it. */
export function EntryPage(): JSX.Element {
  const { seq = "" } = useRoute().params;
  const { can } = useSession();
  const title = `Entry ${/^\d{1,15}$/.test(seq) ? countText(Number(seq)) : seq}`;
  if (!can("ledger:read")) {
    return (
      <Page title={title}>
        <NotReadable />
      </Page>
    );
  }
  return <LoadedEntry key={seq} seq={seq} title={title} />;
}

function LoadedEntry({ seq, title }: { readonly seq: string; readonly title: string }): JSX.Element {
  const entry = useData("GET /v1/ledger/:seq", { params: { seq } });
  const { data } = entry;
  return (
    <Page
      title={title}
      lead={data && <EntryLead entry={data} />}
      actions={
        <>
          <Neighbour seq={Number(seq) - 1} text="Previous" />
          <Neighbour seq={Number(seq) + 1} text="Next" />
          <a class="button" href="/console/ledger">
            All entries
          </a>
        </>
      }
    >
      {entry.problem?.code === "not_found" ? <Unknown seq={seq} /> : <Sections seq={seq} entry={entry} />}
    </Page>
  );
}

function EntryLead({ entry }: { readonly entry: EntryAnswer }): JSX.Element {
  return (
    <>
      <Status status={entry.outcome} /> <span class="break">{sentenceOf(entry)}</span>
    </>
  );
}

function Sections({
  seq,
  entry,
}: {
  readonly seq: string;
  readonly entry: Loaded<EntryAnswer>;
}): JSX.Element {
  const { data, problem, reload } = entry;
  if (data === undefined) return problem ? <ProblemNote problem={problem} retry={reload} /> : <Loading />;
  return (
    <>
      <ProblemNote problem={problem} retry={reload} />
      <div class="grid ledger-columns">
        <Card title="Content">
          <EntryFields entry={data} />
        </Card>
        <div class="stack">
          <EntryPair entry={data} />
          <CallTexts entry={data} />
          {data.detail !== null && (
            <Card title="Detail">
              <Json label="Detail of the entry" value={data.detail} />
            </Card>
          )}
          <ExactBytes entry={data} />
        </div>
      </div>
      <Proof seq={Number(seq)} entry={data} />
    </>
  );
}

function Neighbour({ seq, text }: { readonly seq: number; readonly text: string }): JSX.Element | null {
  if (!(seq >= 1)) return null;
  return (
    <a class="button" href={`/console/ledger/${seq}`}>
      {text}
      <span class="unseen"> entry</span>
    </a>
  );
}

function Unknown({ seq }: { readonly seq: string }): JSX.Element {
  return (
    <Empty
      title="There is no such entry"
      action={
        <a class="button" href="/console/ledger">
          All entries
        </a>
      }
    >
      The ledger of this workspace has no entry {seq}. Entries are numbered from 1, without gaps.
    </Empty>
  );
}
