import type { LedgerEntry } from "../../../http/api.ts";

const OUTCOMES: Readonly<Record<LedgerEntry["outcome"], string>> = {
  allowed: "It was allowed.",
  denied: "It was refused.",
  pending: "It is waiting for a person.",
  succeeded: "It succeeded.",
  failed: "It failed.",
  cancelled: "It was cancelled.",
};
const PHASES: Readonly<Record<LedgerEntry["phase"], string>> = {
  single: "It was recorded in this single entry.",
  intent: "Recorded before the action, so that nothing happens unrecorded.",
  outcome: "The outcome of an intent.",
};
const CHANNELS: Readonly<Record<string, string>> = { rest: "REST", mcp: "MCP", system: "the gateway itself" };

export function phaseWords(phase: LedgerEntry["phase"]): string {
  return PHASES[phase];
}

export function channelWords(channel: string): string {
  return CHANNELS[channel] ?? channel;
}

/** An entry in a sentence or two: who did what, and with what result. */
export function sentenceOf(entry: LedgerEntry): string {
  const { action, actor, oversight, agent, tool, model, channel, code, phase } = entry;
  const who = oversight === null ? actor : oversight.person;
  const about = [
    agent === null ? "" : `agent ${agent}`,
    tool === null ? "" : `tool ${tool}`,
    model === null ? "" : `model ${model}`,
  ].filter((part) => part !== "");
  const where = channel === "system" ? "" : ` over ${channelWords(channel)}`;
  const what = about.length === 0 ? "" : `: ${about.join(", ")}`;
  const because = code === null ? "" : ` (${code})`;
  const ended = phase === "intent" ? "It was about to happen." : OUTCOMES[entry.outcome];
  return `${action} by ${who}${where}${what}. ${ended.slice(0, -1)}${because}.`;
}

/** Optional fields with their labels. */
export const OPTIONAL_FIELDS: readonly (readonly [keyof LedgerEntry, string])[] = [
  ["ref", "intent"],
  ["code", "code"],
  ["request_id", "request"],
  ["agent", "agent"],
  ["tier", "tier"],
  ["model", "model"],
  ["task", "task"],
  ["tool", "tool"],
  ["input_hash", "input hash"],
  ["output_hash", "output hash"],
  ["credits", "credits"],
  ["oversight", "oversight"],
  ["detail", "detail"],
];
