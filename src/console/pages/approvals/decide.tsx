import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Approval } from "../../../http/api.ts";
import type { AnswerOf } from "../../api/client.ts";
import { call } from "../../api/client.ts";
import { ProblemNote } from "../../parts/problem.tsx";
import { Unsaved } from "../../parts/unsaved.tsx";
import { useSession } from "../../state/session.tsx";
import { useAction } from "../../state/use-action.ts";
import { ApproveForm, DenyForm } from "./answer-forms.tsx";
import { ChangeForm } from "./change-form.tsx";
import { hasApproved } from "./has-approved.ts";
import { type Arguments, prettyJson } from "./json.ts";
import { Outcome } from "./outcome.tsx";
import { useKeys } from "./use-keys.ts";

type DecideStage = "none" | "approve" | "change" | "deny";
export type DecisionAnswer = AnswerOf<"POST /v1/tasks/:id/approvals/:call_id">;

export interface DecisionBody {
  readonly decision: "approve" | "deny";
  readonly reason: string;
  readonly arguments?: Arguments;
}

/** Refusals that mean the shown approval is out of date. */
const STALE: readonly string[] = ["approval_decided", "approval_changed", "not_found"];

/**
 * Where a person decides. Each decision takes two steps, so a stray key or click decides nothing. The decision names
 * the hash of the shown arguments, so it cannot apply to any others.
 */
export function Decide({
  approval,
  areKeysOn,
  decided,
  refresh,
  next,
}: {
  readonly approval: Approval;
  readonly areKeysOn: boolean;
  readonly decided: (answer: DecisionAnswer, approval: Approval) => void;
  readonly refresh: () => void;
  /** Opens the next waiting approval; null if there is none. */
  readonly next: (() => void) | null;
}): JSX.Element {
  const { session } = useSession();
  const { arguments_hash: hash, status } = approval;
  const [begun, setBegun] = useState<{ readonly stage: DecideStage; readonly hash: string }>({
    stage: "none",
    hash,
  });
  // A half-made decision must not carry over to changed arguments.
  const stage = begun.hash === hash && status === "pending" ? begun.stage : "none";
  const setStage = (next: DecideStage) => setBegun({ stage: next, hash });
  /** Kept while the reader looks elsewhere on the page. */
  const [reason, setReason] = useState("");
  const [draft, setDraft] = useState<string | null>(null);
  // Once somebody else has decided, unsent input no longer matters.
  const isDirty =
    status === "pending" &&
    (reason.trim() !== "" || (draft !== null && draft !== prettyJson(approval.arguments)));
  const action = useAction();
  const element = useRef<HTMLElement>(null);
  const person = session.person ?? session.token?.name ?? "";
  const mine = status === "pending" && hasApproved(approval, person);
  const canSee = approval.arguments !== null;
  const isOpen = status === "pending" && session.agent === null;
  const canApprove = isOpen && canSee && !mine;

  const wasOpened = useRef(false);
  // A layout effect, so that focus is set before the next key press: `a` followed at once by Enter must reach the
  // opened form.
  useLayoutEffect(() => {
    const root = element.current;
    // The card is fixed to the bottom of the window: scrolling to it would move the arguments out of view. The form
    // for changed arguments is long and scrolls with the page.
    const preventScroll = stage !== "change";
    if (stage !== "none")
      root?.querySelector<HTMLElement>("[data-begin], textarea")?.focus({ preventScroll });
    else if (wasOpened.current && document.activeElement === document.body) {
      // The focused element is gone.
      root?.querySelector("button")?.focus({ preventScroll: true });
    }
    wasOpened.current = stage !== "none";
  }, [stage]);

  function begin(next: DecideStage, may: boolean): boolean {
    if (!may || action.isBusy) return false;
    setStage(next);
    return true;
  }
  useKeys(
    {
      a: () => begin("approve", canApprove),
      e: () => begin("change", isOpen && canSee),
      d: () => begin("deny", isOpen),
    },
    areKeysOn,
  );

  async function send({ decision, reason: why, arguments: given }: DecisionBody): Promise<void> {
    await action.run(async () => {
      try {
        const answer = await call("POST /v1/tasks/:id/approvals/:call_id", {
          params: { id: approval.task, call_id: approval.call_id },
          body: {
            decision,
            arguments_hash: hash,
            ...(why.trim() === "" ? {} : { reason: why.trim() }),
            ...(given === undefined ? {} : { arguments: given }),
          },
        });
        setReason("");
        setDraft(null);
        setStage("none");
        decided(answer, approval);
      } catch (error) {
        if (error instanceof Object && "code" in error && STALE.includes(String(error.code))) {
          setStage("none");
          refresh();
        }
        throw error;
      }
    });
  }

  const leave = () => setStage("none");
  const shared = { action, reason, setReason, leave, send };
  const isRefused = action.problem !== null && !isShownAtFields(stage, action.problem.fields);
  return (
    <section ref={element} class="decide card" data-stage={stage} aria-label="Decision">
      <Unsaved isDirty={isDirty} />
      {isRefused && <ProblemNote problem={action.problem} />}
      {status !== "pending" ? (
        <div class="row-between">
          <Outcome approval={approval} />
          {next && (
            <button type="button" onClick={next}>
              Next waiting call
            </button>
          )}
        </div>
      ) : stage === "approve" ? (
        <ApproveForm tool={approval.tool} agent={approval.agent} {...shared} />
      ) : stage === "deny" ? (
        <DenyForm tool={approval.tool} {...shared} />
      ) : stage === "change" ? (
        <ChangeForm before={approval.arguments} draft={draft} setDraft={setDraft} {...shared} />
      ) : (
        <div class="row-between">
          <div class="row">
            {!mine && (
              <button
                type="button"
                class="button-main"
                disabled={!canApprove}
                onClick={() => begin("approve", canApprove)}
              >
                Approve …
              </button>
            )}
            <button
              type="button"
              disabled={!isOpen || !canSee}
              onClick={() => begin("change", isOpen && canSee)}
            >
              Change …
            </button>
            <button type="button" disabled={!isOpen} onClick={() => begin("deny", isOpen)}>
              Deny …
            </button>
          </div>
          <p class="small muted">{noteOf(session.agent, person, mine, canSee)}</p>
        </div>
      )}
    </section>
  );
}

function noteOf(agent: string | null, person: string, mine: boolean, canSee: boolean): string {
  if (agent !== null) {
    return `Your token acts as ${agent}, but a person has to decide. Sign in with a token that does not act as an agent.`;
  }
  if (mine) return `You approved it as ${person}. Another person must approve it too.`;
  if (!canSee) return "The arguments can no longer be seen, so the call can only be denied.";
  return `Your decision is recorded as made by ${person}.`;
}

/** Whether every error is shown at a visible field. */
function isShownAtFields(stage: DecideStage, fields: ReadonlyMap<string, string>): boolean {
  if (fields.size === 0) return false;
  return [...fields.keys()].every(
    (path) => path === "/reason" || (stage === "change" && path.startsWith("/arguments")),
  );
}
