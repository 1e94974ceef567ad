import type { ApiProblem } from "../../api/problem.ts";
import type { AgentDraft } from "./draft.ts";

/** Props of each part of the form. */
export interface FormPart {
  readonly draft: AgentDraft;
  readonly change: (part: Partial<AgentDraft>) => void;
  /** Why the last save was refused. */
  readonly problem: ApiProblem | null;
}
