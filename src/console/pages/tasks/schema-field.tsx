import type { JSX } from "preact";
import { TextArea } from "../../parts/field.tsx";

/** The JSON Schema of the output. Null: the output is text. */
export function SchemaField({
  text,
  error,
  change,
}: {
  readonly text: string | null;
  readonly error: string | undefined;
  readonly change: (text: string | null) => void;
}): JSX.Element {
  return (
    <fieldset>
      <legend>Output</legend>
      {text === null ? (
        <div>
          <button type="button" class="button-small" onClick={() => change('{\n  "type": "object"\n}')}>
            Ask for JSON
          </button>
        </div>
      ) : (
        <>
          <TextArea
            label="JSON Schema"
            hint="The output is JSON that is valid against it."
            isCode
            rows={6}
            value={text}
            error={error}
            change={change}
          />
          <div>
            <button type="button" class="button-small" onClick={() => change(null)}>
              Ask for text
            </button>
          </div>
        </>
      )}
    </fieldset>
  );
}

/** The schema in the text; undefined if it is not a JSON object. */
export function schemaOf(text: string): Record<string, unknown> | undefined {
  try {
    const schema: unknown = JSON.parse(text);
    return typeof schema === "object" && schema !== null && !Array.isArray(schema)
      ? { ...schema }
      : undefined;
  } catch {
    return undefined;
  }
}
