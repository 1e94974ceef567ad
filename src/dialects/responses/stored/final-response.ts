import { field, parsedOrNothing } from "../../json.ts";
import { readEvent } from "../../pass/events.ts";

const LAST: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete"]);
const BLANK_LINES = ["\n\n", "\r\n\r\n", "\r\r"];

/**
 * The response in the evidence of an answer: the evidence itself or, if that is a stream's events, the response in
 * its last event. Undefined if the evidence contains no response, or if that event leaves the output out.
 */
export function finalResponse(evidence: string): unknown {
  const whole = parsedOrNothing(evidence);
  if (whole !== undefined) return whole;
  const text = evidence.trimEnd();
  const start = Math.max(0, ...BLANK_LINES.map((line) => text.lastIndexOf(line)));
  const event = parsedOrNothing(readEvent(Buffer.from(text.slice(start))).data);
  if (!LAST.has(field(event, "type"))) return undefined;
  const response = field(event, "response");
  const output = field(response, "output");
  return Array.isArray(output) && output.length > 0 ? response : undefined;
}
