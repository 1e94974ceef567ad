// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this file is about them.
import type { Lookup } from "./environment.ts";
import { plainName } from "./redact.ts";

/** The text with its variables filled in, or why that failed. `variables` are the names that stood in it. */
export type Expansion =
  | { readonly text: string; readonly variables: readonly string[] }
  | { readonly failure: string; readonly variables: readonly string[] };

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Replaces every `${NAME}` by what `lookUp` finds. `$${` stands for a literal `${`; a `$` before anything else for
 * itself. What a variable holds is not looked into again.
 */
export function expand(text: string, lookUp: (name: string) => Lookup | undefined): Expansion {
  const variables: string[] = [];
  const failures: string[] = [];
  const filled = text.replace(
    /\$\$\{|\$\{([^}]*)(\}?)/g,
    (match, inner: string | undefined, close: string) => {
      if (match === "$${") return "${";
      if (inner === undefined || close === "" || !NAME.test(inner)) {
        // Not quoted: what stands here may be a secret that begins by chance with these characters.
        failures.push("has a ${…} that holds no variable's name; write ${NAME}, or $${ for a literal ${");
        return "";
      }
      variables.push(inner);
      const found = lookUp(inner);
      if (found && "value" in found) return found.value;
      const reason = found
        ? `but ${found.failure}`
        : `which is not set (and neither is ${plainName(inner)}_FILE)`;
      failures.push(`needs the environment variable ${plainName(inner)}, ${reason}`);
      return "";
    },
  );
  const [failure] = failures;
  return failure === undefined ? { text: filled, variables } : { failure, variables };
}
