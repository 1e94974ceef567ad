/** Writes the price list that is shipped: see `scripts/prices`. */
import { parseArgs } from "node:util";
import { LIST_PATH, listText, packagedProviders, packagedSource } from "./prices.ts";

const { values } = parseArgs({ options: { dated: { type: "string" }, file: { type: "string" } } });
const { dated, file } = values;
if (dated === undefined || !/^\d{4}-\d{2}-\d{2}$/.test(dated)) {
  console.error("usage: scripts/prices --dated YYYY-MM-DD [--file data.json]");
  console.error(
    "The date is the one on which the source was published: the release of the package, or of the file.",
  );
  process.exit(2);
}
const providers = file === undefined ? packagedProviders() : ((await Bun.file(file).json()) as unknown);
const text = await listText(providers, dated, file === undefined ? await packagedSource() : `${file} (MIT)`);
await Bun.write(LIST_PATH, text);
const rows = text.split("\n").filter((line) => line.includes('"model":')).length;
console.log(`${LIST_PATH}: ${rows} models`);
