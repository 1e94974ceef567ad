/** Markup that is already escaped. */
export class Html {
  readonly #markup: string;

  constructor(markup: string) {
    this.#markup = markup;
  }

  toString(): string {
    return this.#markup;
  }
}

export type HtmlPart = Html | string | number | readonly HtmlPart[] | null | undefined | false;

/** A template that escapes all values except markup. */
export function html(strings: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  return new Html(strings.reduce((markup, text, index) => markup + render(parts[index - 1]) + text));
}

function render(part: HtmlPart): string {
  if (part === null || part === undefined || part === false) return "";
  if (part instanceof Html) return part.toString();
  if (typeof part === "object") return part.map(render).join("");
  return escapeHtml(String(part));
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Also removes characters that change text direction: a name must not change how the page reads. */
function escapeHtml(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "")
    .replace(/(?![\t\n])\p{Cc}|\p{Bidi_Control}/gu, "\ufffd");
}

/** `number`: right-aligned. `time`: never wrapped. */
export interface Column {
  readonly name: string;
  readonly kind?: "number" | "time";
}

/** A table with a caption. `note` appears below if rows were left out. Without rows, only `empty` appears. */
export function table({
  caption,
  columns,
  rows,
  empty,
  note,
}: {
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly HtmlPart[])[];
  readonly empty: string;
  readonly note?: string | undefined;
}): Html {
  if (rows.length === 0) return html`<p class="none">${empty}</p>`;
  const classOf = (kind: Column["kind"]) =>
    kind === undefined ? null : html` class="${kind === "number" ? "n" : "t"}"`;
  const cell = (part: HtmlPart, index: number) => html`<td${classOf(columns[index]?.kind)}>${part}</td>`;
  return html`<table>
<caption>${caption}</caption>
<thead><tr>${columns.map(({ name, kind }) => html`<th scope="col"${classOf(kind)}>${name}</th>`)}</tr></thead>
<tbody>
${rows.map((row) => html`<tr>${row.map(cell)}</tr>\n`)}</tbody>
</table>${note === undefined ? null : html`<p class="more">${note}</p>`}`;
}
