import type { JSX } from "preact";
import { TextField } from "../../parts/field.tsx";
import { localOf, utcOf } from "./local-time.ts";

/** The start or end of a period: typed in the reader's zone, reported in UTC. */
export function TimeField({
  label,
  value,
  change,
  error,
}: {
  readonly label: string;
  /** RFC 3339 in UTC; empty if unset. */
  readonly value: string;
  readonly change: (value: string) => void;
  readonly error?: string | undefined;
}): JSX.Element {
  return (
    <TextField
      label={label}
      type="datetime-local"
      value={localOf(value)}
      change={(local) => change(utcOf(local))}
      error={error}
    />
  );
}
