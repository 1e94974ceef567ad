import { attribute, readXml } from "./xml.ts";

/** The HTML element that a paragraph's style corresponds to. */
export type ParagraphKind = "p" | "li" | `h${1 | 2 | 3 | 4 | 5 | 6}`;

/** Maximum number of styles read by id. Real documents have a few thousand; any beyond this are plain paragraphs. */
const MAX_STYLES = 10_000;

/** Recognises styles by name, because names are the same in every language of the office program and ids are not. */
export function readStyles(xml: Uint8Array | null): ReadonlyMap<string, ParagraphKind> {
  const kinds = new Map<string, ParagraphKind>();
  if (xml === null) return kinds;
  let style = "";
  readXml(xml, {
    open(name, attributes) {
      if (name === "w:style") style = attribute(attributes, "styleId") ?? "";
      if (style === "" || kinds.size >= MAX_STYLES) return;
      if (name === "w:name") {
        const kind = kindOfName(attribute(attributes, "val") ?? "");
        if (kind !== "p") kinds.set(style, kind);
      } else if (name === "w:numId" && !kinds.has(style) && attribute(attributes, "val") !== "0") {
        kinds.set(style, "li");
      }
    },
    close(name) {
      if (name === "w:style") style = "";
    },
    text: () => {},
  });
  return kinds;
}

/** The kind by a style's name, or by its id if the document has no styles. */
export function kindOfName(name: string): ParagraphKind {
  const lower = name.toLowerCase();
  if (lower === "title") return "h1";
  const level = /^heading ?([1-6])$/u.exec(lower)?.[1];
  return level === undefined ? "p" : (`h${level}` as ParagraphKind);
}
