import type { JSX } from "preact";
import { TextField } from "../../../parts/field.tsx";

/** The server's `MEMORY_SCOPE` without `/`, which only callers without a boundary can see. The server decides. */
const SCOPE = /^(?:\/|[a-z0-9][a-z0-9._-]*(?:\/[a-z0-9][a-z0-9._-]*){0,15})$/;

/** What is wrong with a typed scope. */
export function scopeError(scope: string): string | undefined {
  if (scope === "") return "Enter a scope";
  if (SCOPE.test(scope)) return undefined;
  return "Use a path such as legal/contracts: a to z, 0 to 9, dots, dashes and underscores, slashes between";
}

export function ScopeField({
  value,
  change,
  known,
  error,
}: {
  readonly value: string;
  readonly change: (scope: string) => void;
  /** Existing scopes, offered as suggestions. */
  readonly known: readonly string[];
  readonly error: string | undefined;
}): JSX.Element {
  return (
    <TextField
      label="Scope"
      required
      placeholder="legal/contracts"
      value={value}
      change={change}
      list={known}
      hint="Agents can find it if their memory scope is this path or one above it. A new path is created by using it. Documents in / are only visible to callers without a boundary."
      error={error}
    />
  );
}
