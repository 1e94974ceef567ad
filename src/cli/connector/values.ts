import { OperatorError } from "../../base/errors.ts";
import { lookUp } from "../../config/environment.ts";
import { expand } from "../../config/expand.ts";
import { readTextFile } from "../../config/read-file.ts";

export type Variables = Readonly<Record<string, string | undefined>>;
export type Texts = Readonly<Record<string, string>>;

/** Fills in `${NAME}` as in the configuration file, so that a secret need not be in argv. @throws OperatorError */
export function filled(option: string, text: string, env: Variables): string {
  const expansion = expand(text, (name) => lookUp(env, readTextFile, name));
  if ("failure" in expansion) throw wrong(option, expansion.failure);
  return expansion.text;
}

/** Parses `KEY=value`, or `KEY` for this process's own variable. @throws OperatorError */
export function readEnv(pairs: readonly string[] = [], env: Variables): Texts {
  return collect(pairs, (pair) => {
    const equals = pair.indexOf("=");
    const key = equals < 0 ? pair : pair.slice(0, equals);
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) throw wrong("--env", "must be KEY=value, or KEY");
    const text = equals < 0 ? `\${${key}}` : pair.slice(equals + 1);
    return [key, filled(`--env ${key}`, text, env)];
  });
}

/** Parses `Name: value`, as curl does. @throws OperatorError */
export function readHeaders(headers: readonly string[] = [], env: Variables): Texts {
  return collect(headers, (header) => {
    const [, name = "", text = ""] = /^([^:\s]+):\s*(.*?)\s*$/s.exec(header) ?? [];
    if (name === "") throw wrong("--header", 'takes "Name: value"');
    return [name, filled(`--header ${name}`, text, env)];
  });
}

/** Splits at `separator`. The text may be a secret, so the error does not repeat it. @throws OperatorError */
export function split(option: string, text: string, separator: string, form: string): [string, string] {
  const at = text.indexOf(separator);
  if (at < 1) throw wrong(option, `takes ${form}`);
  return [text.slice(0, at), text.slice(at + 1)];
}

export function wrong(option: string, why: string): OperatorError {
  return new OperatorError(`${option} ${why}`, undefined, 2);
}

function collect(given: readonly string[], read: (one: string) => readonly [string, string]): Texts {
  return Object.fromEntries(given.map(read));
}
