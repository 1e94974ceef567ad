import { attribute, readXml } from "./xml.ts";

/** What a paragraph's style makes of it: an element of HTML, which has the same meaning. */
export type ParagraphKind = "p" | "li" | `h${1 | 2 | 3 | 4 | 5 | 6}`;

/** Kinds by the style's id. A document names thousands of styles at most; past that they are plain paragraphs. */
const MAX_STYLES = 10_000;

/** Styles are told by their names, which are the same in every language of the office program; their ids are not. */
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

/** By a style's name, or by its id where the document has no styles. */
export function kindOfName(name: string): ParagraphKind {
  const lower = name.toLowerCase();
  if (lower === "title") return "h1";
  const level = /^heading ?([1-6])$/u.exec(lower)?.[1];
  return level === undefined ? "p" : (`h${level}` as ParagraphKind);
}
