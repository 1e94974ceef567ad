import { DocumentBuilder } from "./builder.ts";
import { MAX_TEXT, type ReadDocument } from "./document.ts";
import { eachLeaf } from "./json-leaves.ts";

/**
 * JSON as lines "path.to.key: value". The items of a top-level array are a row each, their paths within the item; so are
 * the members of a top-level object, and of those that hold an array, its items.
 * @throws Fault where it is not valid, with line and column
 */
export function readJson(text: string): ReadDocument {
  const builder = new DocumentBuilder();
  const list = /^\s*\[/u.test(text);
  let record = "";
  let lines: string[] = [];
  let length = 0;
  const flush = () => {
    builder.add("row", lines.join("\n"), { separator: list && lines.length > 1 ? "\n\n" : "\n" });
    lines = [];
    length = 0;
  };
  eachLeaf(text, ({ path, value }) => {
    if (value === "") return;
    const key = JSON.stringify(path.slice(0, !list && /^\d+$/u.test(path[1] ?? "") ? 2 : 1));
    if (key !== record) flush();
    record = key;
    const name = path.slice(list ? 1 : 0).join(".");
    const line = name === "" ? value : `${name}: ${value}`;
    lines.push(line);
    length += line.length;
    // Long paths repeat in each line: what is too long is refused before it is put together.
    if (length > MAX_TEXT) flush();
  });
  flush();
  return builder.finish();
}
