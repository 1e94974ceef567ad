import type { JSX } from "preact";
import { argumentRows, type FormSchema } from "./schema.ts";

/** A tool's arguments as a table. */
export function ArgumentTable({ schema }: { readonly schema: FormSchema }): JSX.Element {
  const rows = argumentRows(schema);
  if (rows.length === 0) {
    return (
      <p class="muted">
        {schema.additionalProperties === false
          ? "This tool takes no arguments."
          : "This tool declares no arguments, but accepts any."}
      </p>
    );
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1).
    <section class="table-frame" tabIndex={0} aria-label="Arguments">
      <table class="arguments">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Type</th>
            <th scope="col">Required</th>
            <th scope="col">Description</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ path, type, isRequired, description, limits }) => (
            <tr key={path}>
              <th scope="row">
                <code class="break">{path}</code>
              </th>
              <td>{type}</td>
              <td>{isRequired ? "yes" : <span class="muted">no</span>}</td>
              <td class="break">
                {description}
                {limits.length > 0 && <div class="muted small">{limits.join("; ")}</div>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
