import { OperatorError } from "../base/errors.ts";

/** One thing that is wrong with the configuration. Never holds a secret's value. */
export interface ConfigProblem {
  /** The setting, such as `tiers.2.models[0]`; empty when the file as a whole is meant. */
  readonly key: string;
  /** Where it was found: `<file>:<line>`, a variable or a flag. */
  readonly where: string | undefined;
  /** Reads on from the key: `is "many"; expected a whole number from 1 to 100000`. */
  readonly message: string;
}

const SHOWN = 50;

/** One line for one problem, without a line break in it. */
export function problemLine({ key, where, message }: ConfigProblem): string {
  const subject = key === "" ? (where ?? "") : where === undefined ? key : `${key} (${where})`;
  return subject === "" ? message : `${subject}: ${message}`;
}

/** The one error that lists every problem (the first 50; the rest as a number). */
export function configError(problems: readonly ConfigProblem[]): OperatorError {
  const lines = problems.slice(0, SHOWN).map(problemLine);
  if (problems.length > SHOWN) lines.push(`and ${problems.length - SHOWN} more`);
  const only = problems.length === 1 ? lines[0] : undefined;
  return new OperatorError(
    only !== undefined
      ? `The configuration is not valid. ${only}`
      : `The configuration has ${problems.length} problems:\n${lines.map((line) => `  ${line}`).join("\n")}`,
    "Correct this and run `gatehouse config check`.",
    2,
  );
}
