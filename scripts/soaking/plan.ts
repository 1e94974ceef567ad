/**
 * A task's prompt says what the task should do. So the scripted model knows it whichever process asks, and each call
 * has an id that no other step of any task has.
 */

import { lastUserText } from "../../test/support/fake-model/request.ts";
import type { Behaviour, FakeModelRequest } from "../../test/support/fake-model.ts";

export interface Plan {
  /** Unique to the task. */
  readonly key: string;
  /** The tools called at each step, by the names that a model sees. After the last step the model talks. */
  readonly steps: readonly (readonly string[])[];
}

/** A prefix of a tool's name: the tool is called with arguments that its schema refuses. */
export const REFUSED = "!";

const WORDS = ["one ", "two ", "three ", "four ", "five ", "six ", "seven ", "eight."];
const BETWEEN_WORDS_MS = 40;

export function promptOf(plan: Plan): string {
  return JSON.stringify(plan);
}

/** The output that the task must have. */
export function outputOf({ key }: Pick<Plan, "key">): string {
  return textOf(key).join("");
}

/** The id in a call's arguments, which is the same whenever the model is asked for this step again. */
export function callIdOf({ key }: Pick<Plan, "key">, step: number, index: number): string {
  return `${key}/${step}/${index}`;
}

/** The model that does what the prompt says, slowly enough to be killed midway. */
export function follow({ body }: FakeModelRequest, firstDelayMs: number): Behaviour {
  const plan = JSON.parse(lastUserText(body)) as Plan;
  const done = body.messages.filter(
    (message) => message.role === "assistant" && message.tool_calls !== undefined,
  ).length;
  const calls = plan.steps[done];
  if (calls === undefined) return { chunks: textOf(plan.key), delayMs: BETWEEN_WORDS_MS, firstDelayMs };
  const toolCalls = calls.map((called, index) => {
    const isRefused = called.startsWith(REFUSED);
    const name = isRefused ? called.slice(REFUSED.length) : called;
    return {
      name,
      arguments: isRefused ? { no: "such argument" } : inputOf(name, callIdOf(plan, done, index)),
    };
  });
  return { toolCalls, firstDelayMs };
}

/** A tool's arguments, chosen so that its upstream and the ledger show the id. */
function inputOf(name: string, id: string): object {
  if (name === "time__now") return {};
  return name === "api__order" ? { body: { id } } : { id };
}

/** The id in a tool's arguments; null if there is none. */
export function idIn(input: { readonly id?: unknown; readonly body?: unknown }): string | null {
  if (typeof input.id === "string") return input.id;
  const { body } = input;
  return typeof body === "object" && body !== null ? idIn(body) : null;
}

function textOf(key: string): string[] {
  return [`${key}: `, ...WORDS];
}
