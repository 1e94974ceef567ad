import type { ComponentChildren, JSX } from "preact";
import type { LedgerEntry } from "../../../http/api.ts";
import { Actor } from "../../parts/actor.tsx";
import { Status } from "../../parts/badge.tsx";
import { Facts } from "../../parts/page.tsx";
import { countText, creditsText, durationText, Time } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { isClientCall, modelCallFacts } from "../calls/client-calls.ts";
import { channelWords, OPTIONAL_FIELDS, phaseWords } from "./entry-words.ts";

type FieldRow = readonly [string, ComponentChildren] | null;
const FIRST = 1;

/** All fields of an entry with their meanings. Absent fields are listed at the end. */
export function EntryFields({ entry }: { readonly entry: LedgerEntry }): JSX.Element {
  const missing = OPTIONAL_FIELDS.filter(([field]) => entry[field] === null).map(([, name]) => name);
  return (
    <>
      <Facts of={[...what(entry), ...aboutWhat(entry), ...hashes(entry)]} />
      {isClientCall(entry) && (
        <>
          <h3>{entry.action === "model.call" ? "Model call by a client" : "Count of tokens for a client"}</h3>
          <Facts of={callRows(entry)} />
        </>
      )}
      {entry.oversight !== null && (
        <>
          <h3>Decision by a person</h3>
          <Facts of={oversightRows(entry.oversight)} />
        </>
      )}
      {missing.length > 0 && <p class="muted small">Not in this entry: {missing.join(", ")}.</p>}
    </>
  );
}

function what({
  seq,
  ts,
  action,
  outcome,
  code,
  phase,
  ref,
  channel,
  actor,
  request_id: request,
}: LedgerEntry): FieldRow[] {
  return [
    ["Number", <span class="number">{countText(seq)}</span>],
    ["Recorded", <Time at={ts} whole />],
    ["Action", <code>{action}</code>],
    ["Outcome", <Status status={outcome} />],
    code === null ? null : ["Code", <code>{code}</code>],
    ["Phase", <Hinted hint={phaseWords(phase)}>{phase}</Hinted>],
    ref === null ? null : ["Intent", <EntryLink seq={ref} />],
    ["Actor", <ActorRow actor={actor} />],
    ["Channel", channelWords(channel)],
    request === null
      ? null
      : [
          "Request",
          <Hinted hint="Identifies the call in the server’s log.">
            <code>{request}</code>
          </Hinted>,
        ],
  ];
}

function aboutWhat({ agent, tier, model, task, tool, credits }: LedgerEntry): FieldRow[] {
  return [
    agent === null
      ? null
      : [
          "Agent",
          <ScopedLink
            scope="agents:read"
            href={`/console/agents/${encodeURIComponent(agent)}`}
            text={agent}
          />,
        ],
    tier === null ? null : ["Tier", <span class="number">{tier}</span>],
    model === null ? null : ["Model", <code>{model}</code>],
    task === null
      ? null
      : [
          "Task",
          <ScopedLink scope="tasks:read" href={`/console/tasks/${encodeURIComponent(task)}`} text={task} />,
        ],
    tool === null ? null : ["Tool", <code>{tool}</code>],
    credits === null
      ? null
      : [
          "Credits",
          <Hinted hint={`${countText(credits)} millionths`}>
            <span class="number">{creditsText(credits / 1_000_000)}</span>
          </Hinted>,
        ],
  ];
}

function callRows(entry: LedgerEntry): FieldRow[] {
  const facts = modelCallFacts(entry);
  const { api, attempt, inputTokens, outputTokens, isEstimated, firstTokenMs, durationMs, countedTokens } =
    facts;
  const number = (name: string, value: number | null): FieldRow =>
    value === null ? null : [name, <span class="number">{countText(value)}</span>];
  const time = (name: string, ms: number | null): FieldRow =>
    ms === null ? null : [name, <span class="number">{durationText(ms)}</span>];
  return [
    ["API", api ?? "Not recorded"],
    number("Attempt", attempt),
    number("Input tokens", inputTokens),
    number("Output tokens", outputTokens),
    isEstimated ? ["Usage", "Estimated: the provider reported no plausible count"] : null,
    number("Counted tokens", countedTokens),
    time("First token", firstTokenMs),
    time("Duration", durationMs),
  ];
}

function hashes({ seq, prev, input_hash: input, output_hash: output }: LedgerEntry): FieldRow[] {
  return [
    input === null
      ? null
      : [
          "Input hash",
          <Hinted hint="Salted hash of the prompt or arguments: the text can be erased while the entry stays.">
            <code>{input}</code>
          </Hinted>,
        ],
    output === null
      ? null
      : [
          "Output hash",
          <Hinted hint="Salted hash of the output or result.">
            <code>{output}</code>
          </Hinted>,
        ],
    [
      "Previous leaf",
      seq === FIRST ? (
        <Hinted hint="The first entry has none.">
          <code>{prev}</code>
        </Hinted>
      ) : (
        <>
          <code>{prev}</code> <EntryLink seq={seq - 1} />
        </>
      ),
    ],
  ];
}

function oversightRows(oversight: NonNullable<LedgerEntry["oversight"]>): FieldRow[] {
  const { person, role, decision, presented_at: presented, decided_at: decided } = oversight;
  const { target_seq: target, arguments_hash: argumentsHash, reason_hash: reason } = oversight;
  const took =
    presented === undefined || decided === undefined
      ? Number.NaN
      : Date.parse(decided) - Date.parse(presented);
  return [
    ["Person", person],
    role === undefined ? null : ["Role", role],
    ["Decision", <Status status={decision} />],
    presented === undefined ? null : ["Presented", <Time at={presented} whole />],
    decided === undefined ? null : ["Decided", <Time at={decided} whole />],
    Number.isNaN(took) ? null : ["Duration", <span class="number">{durationText(Math.max(0, took))}</span>],
    target === undefined ? null : ["Decided on", <EntryLink seq={target} />],
    argumentsHash === undefined ? null : ["Arguments hash", <code>{argumentsHash}</code>],
    reason === undefined ? null : ["Reason hash", <code>{reason}</code>],
  ];
}

/** The actor's current name, followed by the actor as recorded in the entry. */
function ActorRow({ actor }: { readonly actor: string }): JSX.Element {
  return (
    <>
      <Actor of={actor} /> <code class="small muted">{actor}</code>
    </>
  );
}

function EntryLink({ seq }: { readonly seq: number }): JSX.Element {
  return (
    <a class="number" href={`/console/ledger/${seq}`}>
      Entry {countText(seq)}
    </a>
  );
}

/** A link if the reader may open its target, otherwise plain text. */
function ScopedLink({
  scope,
  href,
  text,
}: {
  readonly scope: string;
  readonly href: string;
  readonly text: string;
}): JSX.Element {
  const { can } = useSession();
  return can(scope) ? <a href={href}>{text}</a> : <code>{text}</code>;
}

function Hinted({
  hint,
  children,
}: {
  readonly hint: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <>
      {children} <span class="muted small">{hint}</span>
    </>
  );
}
