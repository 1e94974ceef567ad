import { field } from "../../json.ts";

/** Which of a model's thoughts a client receives. */
export interface ThinkingForm {
  /**
   * Without thoughts, an answer begins with its text: clients that have not asked for any often read nothing else. If
   * they have tools they get the thoughts too, because some models need them back with the results.
   */
  readonly isShown: boolean;
  /** Only their signatures are asked for. */
  readonly isOmitted: boolean;
}

/** @param request as parsed */
export function thinkingForm(request: unknown): ThinkingForm {
  const thinking = field(request, "thinking");
  const type = field(thinking, "type");
  const tools = field(request, "tools");
  const hasTools = Array.isArray(tools) && tools.length > 0;
  const isShown = type === "adaptive" || type === "enabled" || (hasTools && type !== "disabled");
  return { isShown, isOmitted: field(thinking, "display") === "omitted" };
}
