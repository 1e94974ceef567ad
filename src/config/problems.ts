import { OperatorError } from "../base/errors.ts";

/** A problem with the configuration. Never contains a secret's value. */
export interface ConfigProblem {
  /** The setting, such as `tiers.2.models[0]`; empty for a problem with the file as a whole. */
  readonly key: string;
  /** Where it was found: `<file>:<line>`, a variable or a flag. */
  readonly where: string | undefined;
  /** A phrase to follow the key: `is "many"; expected a whole number from 1 to 100000`. */
  readonly message: string;
}

const SHOWN = 50;

/** A problem as one line without line breaks. */
export function problemLine({ key, where, message }: ConfigProblem): string {
  const subject = key === "" ? (where ?? "") : where === undefined ? key : `${key} (${where})`;
  return subject === "" ? message : `${subject}: ${message}`;
}

/** A single error that lists every problem (the first 50, then how many more there are). */
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
