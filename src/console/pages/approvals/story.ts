/** What led to a call, from the task's events (contract, section 4). */
export interface CallHistory {
  readonly steps: readonly HistoryStep[];
  /** The arguments that the model requested, before anyone changed them; undefined until read. */
  readonly asked: unknown;
  /** Whether everything that led to the call has been read. */
  readonly isWhole: boolean;
}

export interface HistoryStep {
  /** Text of the model. */
  readonly text: string;
  readonly calls: readonly StoryCall[];
}

export interface StoryCall {
  readonly id: string;
  readonly tool: string;
  readonly arguments: unknown;
  /** The call's status; null until it has one. */
  readonly status: string | null;
}

export const EMPTY_STORY: CallHistory = { steps: [], asked: undefined, isWhole: false };

/** Longest model text kept for a step, in UTF-16 code units. */
const LONGEST_TEXT = 200_000;

/** The events that a story is built from. Data of an unexpected form is ignored. */
export const STORY_EVENTS = [
  "output.delta",
  "output.reset",
  "tool.call",
  "tool.result",
  "approval.required",
  "task.finished",
] as const;
export type StoryEvent = (typeof STORY_EVENTS)[number];

/** Adds an event to the story, up to the request for approval of `callId`. */
export function tell(
  story: CallHistory,
  callId: string,
  name: StoryEvent,
  data: Record<string, unknown>,
): CallHistory {
  if (story.isWhole) return story;
  const { steps } = story;
  switch (name) {
    case "output.delta":
      return { ...story, steps: withText(steps, String(data.text ?? "")) };
    case "output.reset":
      // The step is being retried: drop its first attempt.
      return { ...story, steps: isAnswered(steps.at(-1)) ? steps : steps.slice(0, -1) };
    case "tool.call":
      return { ...story, steps: withCall(steps, data) };
    case "tool.result":
      return { ...story, steps: withResult(steps, data) };
    case "approval.required":
      return data.call_id === callId ? { ...story, asked: data.arguments, isWhole: true } : story;
    case "task.finished":
      return { ...story, isWhole: true };
  }
}

function isAnswered(step: HistoryStep | undefined): boolean {
  return step?.calls.some(({ status }) => status !== null) === true;
}

function isOver(step: HistoryStep | undefined): boolean {
  return step === undefined || (step.calls.length > 0 && step.calls.every(({ status }) => status !== null));
}

function withText(steps: readonly HistoryStep[], text: string): readonly HistoryStep[] {
  const last = steps.at(-1);
  if (!last || last.calls.length > 0) return [...steps, { text, calls: [] }];
  return [...steps.slice(0, -1), { ...last, text: (last.text + text).slice(0, LONGEST_TEXT) }];
}

function withCall(steps: readonly HistoryStep[], data: Record<string, unknown>): readonly HistoryStep[] {
  const call: StoryCall = {
    id: String(data.id),
    tool: String(data.tool),
    arguments: data.arguments,
    status: null,
  };
  // A run that resumes after a decision repeats its calls.
  if (steps.some(({ calls }) => calls.some(({ id }) => id === call.id))) return steps;
  const last = steps.at(-1);
  if (!last || isOver(last)) return [...steps, { text: "", calls: [call] }];
  return [...steps.slice(0, -1), { ...last, calls: [...last.calls, call] }];
}

function withResult(steps: readonly HistoryStep[], data: Record<string, unknown>): readonly HistoryStep[] {
  return steps.map((step) => ({
    ...step,
    calls: step.calls.map((call) => (call.id === data.id ? { ...call, status: String(data.status) } : call)),
  }));
}
