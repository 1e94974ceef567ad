import { Parser } from "htmlparser2";
import { withoutControls } from "./builder.ts";
import { type Block, type ContentType, titleOf } from "./document.ts";
import { readHtml } from "./html.ts";
import { frontMatter, readMarkdown } from "./markdown.ts";

/**
 * The title that the text declares (in its front matter or `<title>`, otherwise in its first heading), on one line;
 * null if there is none. The vault requires a title from its writers: this is for callers who only have a file.
 * @throws Fault if the text cannot be read
 */
export function statedTitle(text: string, type: ContentType): string | null {
  if (type === "text/markdown") return markdownTitle(text);
  if (type === "text/html") return htmlTitle(text, false);
  if (type === "application/xhtml+xml") return htmlTitle(text, true);
  return null;
}

function markdownTitle(text: string): string | null {
  const stated = /\ntitle[ \t]*:[ \t]*(\S[^\r\n]*)/u.exec(frontMatter(text).yaml)?.[1]?.trim() ?? "";
  const title = stated.replace(/^(["'])(.*)\1$/u, "$2");
  const isBlock = /^[>|]/u.test(title);
  const blocks = readMarkdown(text).blocks.filter(({ level }) => level === 1);
  return (isBlock ? null : titleOf(title)) ?? firstOf(text, blocks);
}

function htmlTitle(html: string, xhtml: boolean): string | null {
  let title = "";
  let count = 0;
  let isInside = false;
  const parser = new Parser(
    {
      onopentagname: (name) => {
        if (name === "title") isInside = count++ === 0;
      },
      onclosetag: (name) => {
        if (name === "title") isInside = false;
      },
      ontext: (text) => {
        if (isInside) title += text;
      },
    },
    { recognizeSelfClosing: xhtml, recognizeCDATA: xhtml },
  );
  parser.end(html);
  const { text, blocks } = readHtml(html, { xhtml });
  return (
    titleOf(withoutControls(title)) ??
    firstOf(
      text,
      blocks.filter(({ kind }) => kind === "heading"),
    )
  );
}

function firstOf(text: string, headings: readonly Block[]): string | null {
  for (const { start, end } of headings) {
    const title = titleOf(text.slice(start, end));
    if (title !== null) return title;
  }
  return null;
}
