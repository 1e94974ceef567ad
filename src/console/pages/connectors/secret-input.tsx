import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Field } from "../../parts/field.tsx";

interface InputProps {
  readonly value: string;
  readonly change: (value: string) => void;
  /** What it is, in the name of its button. */
  readonly name: string;
  readonly described?: {
    readonly id: string;
    readonly "aria-describedby": string | undefined;
    readonly "aria-invalid": "true" | undefined;
  };
}

/** A value that is hidden from who looks over a shoulder, until its reader wants to see it. */
export function SecretInput({ value, change, name, described }: InputProps): JSX.Element {
  const [isShown, setShown] = useState(false);
  return (
    <div class="secret">
      <input
        {...({
          ...(described ?? { "aria-label": name }),
          type: isShown ? "text" : "password",
          value,
          // Browsers fill in a kept password where this is `off`.
          autocomplete: "new-password",
          spellcheck: false,
          // Their types are of one kind of input each; this is either.
        } as JSX.IntrinsicElements["input"])}
        onInput={(event: InputEvent) => {
          if (event.currentTarget instanceof HTMLInputElement) change(event.currentTarget.value);
        }}
      />
      <button
        type="button"
        aria-pressed={isShown}
        aria-label={`Show ${name}`}
        onClick={() => setShown(!isShown)}
      >
        {isShown ? "Hide" : "Show"}
      </button>
    </div>
  );
}

export function SecretField({
  label,
  hint,
  error,
  value,
  change,
}: {
  readonly label: string;
  readonly hint?: string;
  readonly error?: string | undefined;
  readonly value: string;
  readonly change: (value: string) => void;
}): JSX.Element {
  return (
    <Field label={label} hint={hint} error={error}>
      {(described) => <SecretInput value={value} change={change} name={label} described={described} />}
    </Field>
  );
}
