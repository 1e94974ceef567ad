import type { FieldError } from "../base/errors.ts";
import { JsonTooLarge, parseJson } from "../base/json-limits.ts";
import { validator } from "../base/schema.ts";
import { RunFailure } from "./errors.ts";
import type { JsonValue, Message, UserMessage } from "./message.ts";
import type { JsonSchema } from "./tools/tool.ts";

/** Makes the answer of a run a JSON value. */
export interface OutputOption {
  /** Describes the value. It is shown to the model. */
  readonly schema: JsonSchema;
  /** Problems with a value; empty if it is valid. Default: the schema itself. */
  validate?(value: JsonValue): readonly FieldError[];
}

/** The result of checking an answer: its value, or the message that asks the model to correct it. */
export type CheckedOutput =
  | { readonly isValid: true; readonly json: JsonValue }
  | { readonly isValid: false; readonly request: UserMessage };

/** How often a model may correct its answer in one run. */
const MOST_REPAIRS = 2;

/**
 * The instructions with the output's schema. Not every provider passes a schema to its model, and providers that
 * restrict the answer to JSON require the prompt to ask for it.
 */
export function outputInstructions(
  instructions: string | undefined,
  output: OutputOption | undefined,
): string | undefined {
  if (!output) return instructions;
  const asked =
    "Your final answer must be one JSON value that is valid against this JSON Schema, without a code fence or any other text:\n" +
    JSON.stringify(output.schema);
  return instructions === undefined || instructions === "" ? asked : `${instructions}\n\n${asked}`;
}

/** Checks the answers of one run, and counts how often the model was asked to correct them. */
export class OutputRepair {
  readonly #validate: (value: JsonValue) => readonly FieldError[];
  #repairs = 0;

  /** @throws TypeError if there is no `validate` and the schema cannot be compiled */
  constructor({ schema, validate }: OutputOption) {
    this.#validate = validate ?? compiled(schema);
  }

  /**
   * Checks an answer.
   * @throws RunFailure `output_invalid` if it is not valid and the model has used up its corrections
   */
  check(text: string): CheckedOutput {
    const checked = this.#checked(text);
    if (checked.isValid) return checked;
    if (this.#repairs >= MOST_REPAIRS) throw outputInvalid();
    this.#repairs += 1;
    return checked;
  }

  /**
   * The saved messages, completed with the requests for corrections, which hosts do not save. The last answer remains
   * to be checked.
   */
  resume(messages: readonly Message[]): readonly Message[] {
    return messages.flatMap((message, index) => {
      if (message.role !== "assistant" || message.toolCalls.length > 0) return [message];
      const next = messages[index + 1];
      if (next === undefined || next.role === "user") return [message];
      const checked = this.#checked(message.text);
      if (checked.isValid) return [message];
      this.#repairs += 1;
      return [message, checked.request];
    });
  }

  #checked(text: string): CheckedOutput {
    let json: JsonValue;
    try {
      json = parseJson(text) as JsonValue;
    } catch (error) {
      if (!(error instanceof SyntaxError || error instanceof JsonTooLarge)) throw error;
      return refused("It is not JSON.");
    }
    const errors = this.#validate(json);
    if (errors.length === 0) return { isValid: true, json };
    return refused(errors.map(({ path, message }) => `${path || "the value"}: ${message}`).join("\n"));
  }
}

export function outputInvalid(): RunFailure {
  return new RunFailure("output_invalid", "The model's output does not have the requested form.");
}

function compiled(schema: JsonSchema): (value: JsonValue) => readonly FieldError[] {
  const output = validator(schema);
  try {
    output.is(undefined);
  } catch (cause) {
    throw new TypeError("output.schema: cannot be compiled", { cause });
  }
  return (value) => output.errors(value);
}

function refused(problems: string): CheckedOutput {
  const text = `Your answer is not valid:\n${problems}\nAnswer again, with nothing but the corrected JSON value.`;
  return { isValid: false, request: { role: "user", text } };
}
