import type { ApiProblem } from "../../api/problem.ts";
import type { Draft } from "./draft.ts";

/** Props of each part of the form. */
export interface FormPart {
  readonly draft: Draft;
  readonly change: (part: Partial<Draft>) => void;
  /** Why the last save was refused. */
  readonly problem: ApiProblem | null;
}
