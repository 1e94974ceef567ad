import { redact } from "../base/log.ts";

/** The form of an agent's name. */
export const AGENT_NAME = "^[a-z0-9][a-z0-9_-]{0,62}$";
const NAME = new RegExp(AGENT_NAME);

export function isAgentName(text: string): boolean {
  return NAME.test(text);
}

/**
 * Whether entries of the ledger may contain this name of an agent. They last forever, so a token that was sent in
 * place of a name is left out.
 */
export function isRecordedName(text: string): boolean {
  return isAgentName(text) && redact(text) === text;
}
