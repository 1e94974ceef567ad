// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this file handles them.
import type { VariableLookup } from "./environment.ts";
import { plainName } from "./redact.ts";

/** The text with its variables filled in, or why that failed. `variables` are the names found in it. */
export type Expansion =
  | { readonly text: string; readonly variables: readonly string[] }
  | { readonly failure: string; readonly variables: readonly string[] };

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Replaces every `${NAME}` by the value that `lookUp` returns. `$${` is a literal `${`; a `$` before anything else is
 * itself. Values are not expanded again.
 */
export function expand(text: string, lookUp: (name: string) => VariableLookup | undefined): Expansion {
  const variables: string[] = [];
  const failures: string[] = [];
  const filled = text.replace(
    /\$\$\{|\$\{([^}]*)(\}?)/g,
    (match, inner: string | undefined, close: string) => {
      if (match === "$${") return "${";
      if (inner === undefined || close === "" || !NAME.test(inner)) {
        // Not quoted, because it may be a secret that happens to start with these characters.
        failures.push("has a ${…} without a variable's name; write ${NAME}, or $${ for a literal ${");
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
