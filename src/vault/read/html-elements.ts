const words = (names: string) => new Set(names.split(" "));

/**
 * Elements whose content is not text of the page: title, code and styles, graphics, fallbacks for other media, and
 * form fields. Also `nav`, because menus repeat on each page of a site and would match every question. But `header`,
 * `aside` and `footer` are read, because they contain notes, warnings, authors and terms that could otherwise not be
 * found. `head` needs no rule: all its content is in this list, or empty.
 */
export const SKIPPED = words(
  "title script style template noscript nav svg iframe object canvas audio video map select datalist textarea button rp rt",
);

/** Elements that start on a new line. All others, including unknown ones, are part of the surrounding text. */
export const BLOCKS = words(
  "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure footer " +
    "form h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main menu nav ol optgroup p pre search section summary " +
    "table tbody td tfoot th thead tr ul",
);

/** 1 to 6, or 0 for anything but a heading. */
export function headingLevel(name: string): number {
  return /^h[1-6]$/u.test(name) ? Number(name[1]) : 0;
}

const HIDDEN_STYLE = /(?:^|[;\s])(?:display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden)/iu;

export function isHidden(attributes: Readonly<Record<string, string>>): boolean {
  if ("hidden" in attributes || attributes["aria-hidden"]?.trim().toLowerCase() === "true") return true;
  const style = attributes.style;
  return style !== undefined && HIDDEN_STYLE.test(style);
}
