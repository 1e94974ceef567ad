import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  /** Error from the server or the page. */
  readonly error?: string | undefined;
}

interface FieldAttributes {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": "true" | undefined;
}

/** A label, its control, a hint and an error, linked to each other for screen readers. */
export function Field({
  label,
  hint,
  error,
  children,
}: FieldProps & { readonly children: (described: FieldAttributes) => JSX.Element }): JSX.Element {
  const id = useId();
  const described = [hint ? `${id}-hint` : "", error ? `${id}-error` : ""].filter((part) => part !== "");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        "aria-describedby": described.length > 0 ? described.join(" ") : undefined,
        "aria-invalid": error ? "true" : undefined,
      })}
      {hint && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {error && (
        <span class="error" id={`${id}-error`}>
          {error}
        </span>
      )}
    </div>
  );
}

interface TextProps extends FieldProps {
  readonly value: string;
  readonly change: (value: string) => void;
  readonly placeholder?: string;
  readonly required?: boolean;
  readonly disabled?: boolean;
}

export function TextField({
  value,
  change,
  type = "text",
  placeholder,
  required = false,
  disabled = false,
  autocomplete = "off",
  list,
  ...field
}: TextProps & {
  readonly type?: "text" | "password" | "search" | "url" | "date" | "datetime-local";
  readonly autocomplete?: string;
  /** Suggestions offered while typing. */
  readonly list?: readonly string[];
}): JSX.Element {
  return (
    <Field {...field}>
      {(described) => (
        <>
          <input
            {...({
              ...described,
              type,
              value,
              placeholder,
              required,
              disabled,
              autocomplete,
              spellcheck: false,
              list: list && `${described.id}-list`,
              // Each input kind has its own attribute type; this is their union.
            } as JSX.IntrinsicElements["input"])}
            onInput={(event: InputEvent) => {
              if (event.currentTarget instanceof HTMLInputElement) change(event.currentTarget.value);
            }}
          />
          {list && (
            <datalist id={`${described.id}-list`}>
              {list.map((option) => (
                <option key={option} value={option} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

export function TextArea({
  value,
  change,
  rows = 4,
  placeholder,
  required = false,
  disabled = false,
  isCode = false,
  ...field
}: TextProps & { readonly rows?: number; readonly isCode?: boolean }): JSX.Element {
  return (
    <Field {...field}>
      {(described) => (
        <textarea
          {...described}
          class={isCode ? "mono" : undefined}
          rows={rows}
          value={value}
          placeholder={placeholder}
          required={required}
          disabled={disabled}
          spellcheck={!isCode}
          onInput={(event) => change(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** A number as it is typed: empty and incomplete input is kept as it is. See `numberOf`. */
export function NumberField({
  value,
  change,
  min,
  max,
  step = "1",
  placeholder,
  required = false,
  disabled = false,
  ...field
}: TextProps & { readonly min?: number; readonly max?: number; readonly step?: string }): JSX.Element {
  return (
    <Field {...field}>
      {(described) => (
        <input
          {...described}
          type="number"
          inputmode="decimal"
          value={value}
          min={min}
          max={max}
          step={step}
          placeholder={placeholder}
          required={required}
          disabled={disabled}
          onInput={(event) => change(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** The number typed into a number field; null if it is empty. */
export function numberOf(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

export function Select({
  value,
  change,
  options,
  disabled = false,
  ...field
}: FieldProps & {
  readonly value: string;
  readonly change: (value: string) => void;
  /** Pairs of value and label. */
  readonly options: readonly (readonly [string, string])[];
  readonly disabled?: boolean;
}): JSX.Element {
  return (
    <Field {...field}>
      {(described) => (
        <select
          {...described}
          value={value}
          disabled={disabled}
          onChange={(event) => change(event.currentTarget.value)}
        >
          {options.map(([option, name]) => (
            <option key={option} value={option} selected={option === value}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Check({
  label,
  checked,
  change,
  hint,
  disabled = false,
}: {
  readonly label: ComponentChildren;
  readonly checked: boolean;
  readonly change: (checked: boolean) => void;
  readonly hint?: ComponentChildren;
  readonly disabled?: boolean;
}): JSX.Element {
  const id = useId();
  return (
    <div class="check">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => change(event.currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        {hint && <div class="muted small">{hint}</div>}
      </div>
    </div>
  );
}

/** A list of strings, one on each line. */
export function Lines({
  values,
  change,
  ...rest
}: Omit<TextProps, "value" | "change"> & {
  readonly values: string;
  readonly change: (values: string) => void;
  readonly rows?: number;
}): JSX.Element {
  return <TextArea {...rest} isCode value={values} change={change} />;
}

/** The strings of such a list. Empty lines are ignored. */
export function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
