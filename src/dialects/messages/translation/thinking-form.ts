import { field } from "../../json.ts";

/** The part of a model's thoughts that a client receives. */
export interface ThinkingForm {
  /**
   * Without thoughts, an answer begins with its text: clients that did not request thoughts often read nothing else.
   * Clients with tools receive the thoughts too, because some models need them back with the results.
   */
  readonly isShown: boolean;
  /** Whether only their signatures are requested. */
  readonly isOmitted: boolean;
}

/** @param request the parsed request */
export function thinkingForm(request: unknown): ThinkingForm {
  const thinking = field(request, "thinking");
  const type = field(thinking, "type");
  const tools = field(request, "tools");
  const hasTools = Array.isArray(tools) && tools.length > 0;
  const isShown = type === "adaptive" || type === "enabled" || (hasTools && type !== "disabled");
  return { isShown, isOmitted: field(thinking, "display") === "omitted" };
}
