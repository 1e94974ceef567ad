import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Field } from "../../parts/field.tsx";

interface InputProps {
  readonly value: string;
  readonly change: (value: string) => void;
  /** Names the value in the label of its button. */
  readonly name: string;
  readonly described?: {
    readonly id: string;
    readonly "aria-describedby": string | undefined;
    readonly "aria-invalid": "true" | undefined;
  };
}

/** A value hidden from onlookers until the reader reveals it. */
export function SecretInput({ value, change, name, described }: InputProps): JSX.Element {
  const [isShown, setShown] = useState(false);
  return (
    <div class="secret">
      <input
        {...({
          ...(described ?? { "aria-label": name }),
          type: isShown ? "text" : "password",
          value,
          // Browsers ignore `off` and fill in saved passwords.
          autocomplete: "new-password",
          spellcheck: false,
          // Each input kind has its own attribute type; this is their union.
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
