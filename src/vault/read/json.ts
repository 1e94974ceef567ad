import { DocumentBuilder } from "./builder.ts";
import { MAX_TEXT, type ReadDocument } from "./document.ts";
import { eachLeaf } from "./json-leaves.ts";

/**
 * JSON as lines "path.to.key: value". Each item of a top-level array is a row with paths relative to the item; so is
 * each member of a top-level object, and each item of a member that is an array.
 * @throws Fault if it is invalid, with line and column
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
    // Long paths repeat on each line, so an overlong row is refused before it is built.
    if (length > MAX_TEXT) flush();
  });
  flush();
  return builder.finish();
}
