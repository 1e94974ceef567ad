import type { ApiProblem } from "../../api/problem.ts";
import type { Draft } from "./draft.ts";

/** What each part of the form is given. */
export interface FormPart {
  readonly draft: Draft;
  readonly change: (part: Partial<Draft>) => void;
  /** Why the last saving was refused. */
  readonly problem: ApiProblem | null;
}
