import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

interface ChoiceOption<Value extends string> {
  readonly value: Value;
  readonly name: string;
  /** Explains the option. */
  readonly hint: ComponentChildren;
}

/** Radio buttons with explanations. */
export function Choice<Value extends string>({
  label,
  value,
  options,
  change,
  disabled = false,
}: {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly ChoiceOption<Value>[];
  readonly change: (value: Value) => void;
  readonly disabled?: boolean;
}): JSX.Element {
  const id = useId();
  return (
    <fieldset disabled={disabled}>
      <legend>{label}</legend>
      {options.map((option) => (
        <div class="check" key={option.value}>
          <input
            id={`${id}-${option.value}`}
            type="radio"
            name={id}
            checked={option.value === value}
            aria-describedby={`${id}-${option.value}-hint`}
            onChange={() => change(option.value)}
          />
          <div>
            <label for={`${id}-${option.value}`}>{option.name}</label>
            <div id={`${id}-${option.value}-hint`} class="muted small">
              {option.hint}
            </div>
          </div>
        </div>
      ))}
    </fieldset>
  );
}
