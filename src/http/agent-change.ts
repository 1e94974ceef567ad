import type { Agent } from "../access/agents.ts";
import { MICROS_PER_CREDIT } from "../base/credits.ts";
import { canonicalJson } from "../base/json.ts";
import { redact } from "../base/log.ts";
import type { Detail } from "../ledger/entry.ts";

/** Characters per field; a list may name hundreds of globs. */
const LONGEST = 200;

/**
 * The ledger detail of a change to an agent: which fields were given, a summary of what the agent may now do, and a
 * hash of everything. The hash identifies the version without putting the agent's instructions into the entry.
 */
export function agentChange(agent: Agent, given: object): Detail {
  const names = Object.keys(given).sort().join(" ");
  return {
    ...agentVersion(agent),
    fields: names === "" ? undefined : names,
    owner: short(agent.owner),
    memory_scope: list(agent.memoryScope),
    tiers: agent.tierPolicy.tiers === null ? "all" : list(agent.tierPolicy.tiers),
    models: list(agent.tierPolicy.models.allow),
    models_denied: list(agent.tierPolicy.models.deny),
    tools: list(agent.tools),
    approvals: agent.approvals === null ? "destructive" : list(agent.approvals),
    max_steps: agent.maxSteps,
    credits_per_day:
      agent.creditsPerDay === null ? undefined : String(agent.creditsPerDay / MICROS_PER_CREDIT),
  };
}

/** Identifies this version of the agent. */
export function agentVersion({
  id: _id,
  name: _name,
  status: _status,
  version,
  createdAt: _made,
  updatedAt: _changed,
  ...fields
}: Agent): Detail {
  return { version, hash: new Bun.CryptoHasher("sha256").update(canonicalJson(fields)).digest("hex") };
}

function list(values: readonly (string | number)[]): string {
  return values.length === 0 ? "none" : short(values.join(" "));
}

/** Redacts before truncating, because a truncated secret would no longer be recognised. */
function short(text: string): string {
  const shown = redact(text);
  return shown.length <= LONGEST ? shown : `${shown.slice(0, LONGEST - 1)}…`;
}
