import type { JSX } from "preact";
import { NumberField, Select, TextArea, TextField } from "../../parts/field.tsx";
import type { ArgumentField } from "./schema.ts";

const YES_OR_NO = [
  ["true", "true"],
  ["false", "false"],
] as const;

/** An input suited to the argument's type. */
export function ArgumentInput({
  field: { name, kind, type, isRequired, description, limits, choices },
  value,
  change,
  error,
}: {
  readonly field: ArgumentField;
  readonly value: string;
  readonly change: (value: string) => void;
  readonly error: string | undefined;
}): JSX.Element {
  const given = {
    label: isRequired ? `${name} (needed)` : name,
    hint: [kind === "json" ? `${type}, as JSON` : type, description, ...limits]
      .filter((part) => part !== "")
      .join(" · "),
    error,
    value,
    change,
  };
  switch (kind) {
    case "number":
    case "integer":
      return <NumberField {...given} step={kind === "integer" ? "1" : "any"} />;
    case "boolean":
      return <Select {...given} options={[["", "not given"], ...YES_OR_NO]} />;
    case "choice":
      return <Select {...given} options={[["", "not given"], ...choices]} />;
    case "string":
      return <TextField {...given} />;
    default:
      return <TextArea {...given} rows={kind === "json" ? 3 : 1} isCode={kind === "json"} />;
  }
}
