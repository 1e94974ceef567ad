import { OperatorError } from "../../base/errors.ts";
import { lookUp } from "../../config/environment.ts";
import { expand } from "../../config/expand.ts";
import { readTextFile } from "../../config/read-file.ts";

export type Environment = Readonly<Record<string, string | undefined>>;
export type Texts = Readonly<Record<string, string>>;

/** A value with its `${NAME}` filled in, as the configuration file has it: a secret need not stand in argv. @throws OperatorError */
export function filled(option: string, text: string, env: Environment): string {
  const expansion = expand(text, (name) => lookUp(env, readTextFile, name));
  if ("failure" in expansion) throw wrong(option, expansion.failure);
  return expansion.text;
}

/** `KEY=value`, or `KEY` for what this process has under that name. @throws OperatorError */
export function readEnv(pairs: readonly string[] = [], env: Environment): Texts {
  return collect(pairs, (pair) => {
    const equals = pair.indexOf("=");
    const key = equals < 0 ? pair : pair.slice(0, equals);
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) throw wrong("--env", "takes KEY=value, or KEY");
    const text = equals < 0 ? `\${${key}}` : pair.slice(equals + 1);
    return [key, filled(`--env ${key}`, text, env)];
  });
}

/** `Name: value`, as curl has it. @throws OperatorError */
export function readHeaders(headers: readonly string[] = [], env: Environment): Texts {
  return collect(headers, (header) => {
    const [, name = "", text = ""] = /^([^:\s]+):\s*(.*?)\s*$/s.exec(header) ?? [];
    if (name === "") throw wrong("--header", 'takes "Name: value"');
    return [name, filled(`--header ${name}`, text, env)];
  });
}

/** The two sides of `separator`. What stands there may be a secret: an error repeats nothing of it. @throws OperatorError */
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
