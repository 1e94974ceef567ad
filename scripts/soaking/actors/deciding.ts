import type { Life } from "../life.ts";
import type { World } from "../world.ts";
import { pick } from "./dispatching.ts";

const PAUSE_MS = 60;

type Decision = "approve" | "deny" | "change";

/** A person's decision on one call. */
export interface Decided {
  /** The id in the requested arguments. */
  readonly id: string;
  readonly decision: Decision;
  /** Whether the answer `denied` or `approved` has arrived. */
  isAcknowledged: boolean;
}

interface Pending {
  readonly task: string;
  readonly call_id: string;
  readonly agent: string;
  readonly arguments: { readonly id: string };
  readonly arguments_hash: string;
}

/** The id with which a person replaces the requested one. */
export function changedId(id: string): string {
  return `${id}/changed`;
}

/** Two people look at pending calls and decide. If a call needs both, both approve it. */
export async function decide(world: World, life: Life): Promise<void> {
  while (!life.isOver) {
    const answer = await life.call("GET", "/v1/approvals?limit=200");
    const pending = answer?.status === 200 ? (answer.body as { data: Pending[] }).data : [];
    for (const each of pending) {
      for (const token of world.people) await decideOne(world, life, each, token);
    }
    await life.pause(PAUSE_MS);
  }
}

async function decideOne(world: World, life: Life, pending: Pending, token: string): Promise<void> {
  const decided = decisionOn(world, pending);
  const { task, call_id, arguments_hash } = pending;
  // If the question was already changed, its hash is a different one, which the first person has approved.
  const isChanged = decided.decision === "change" && pending.arguments.id === decided.id;
  const answer = await life.call("POST", `/v1/tasks/${task}/approvals/${call_id}`, {
    token,
    body: {
      decision: decided.decision === "deny" ? "deny" : "approve",
      reason: "as the script says",
      arguments_hash,
      ...(isChanged ? { arguments: { id: changedId(decided.id) } } : {}),
    },
  });
  if (answer === null) return;
  if (answer.status === 409) return;
  if (answer.status !== 200) {
    world.faults.add("decisions", `deciding on ${call_id} of ${task}: ${answer.status} ${answer.text}`);
    return;
  }
  if ((answer.body as { status: string }).status !== "pending") decided.isAcknowledged = true;
}

/** Decides once and for all: after a crash, the same person decides the same way again. */
function decisionOn({ decided, random }: World, { call_id, agent, arguments: input }: Pending): Decided {
  const known = decided.get(call_id);
  if (known) return known;
  const choices: [Decision, ...Decision[]] =
    agent === "double" ? ["approve", "approve", "deny"] : ["approve", "approve", "deny", "change"];
  const made: Decided = { id: input.id, decision: pick(random, choices), isAcknowledged: false };
  decided.set(call_id, made);
  return made;
}
