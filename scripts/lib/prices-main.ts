/** Writes the price list that is shipped: see `scripts/prices`. */
import { parseArgs } from "node:util";
import { LIST_PATH, listText, packagedProviders, packagedSource } from "./prices.ts";

const USAGE = `Usage: scripts/prices --dated YYYY-MM-DD [--file data.json]

Writes src/models/prices/list.json from the installed @pydantic/genai-prices, or from a file in its format.

  --dated DAY   when the package, or the file, was published
  --file FILE   a file to read instead of the package
  -h, --help    show help`;

const { values } = parseArgs({
  options: { dated: { type: "string" }, file: { type: "string" }, help: { type: "boolean", short: "h" } },
});
const { dated, file, help } = values;
if (help) {
  console.log(USAGE);
  process.exit(0);
}
if (dated === undefined || !/^\d{4}-\d{2}-\d{2}$/.test(dated)) {
  console.error(USAGE);
  process.exit(2);
}
const providers = file === undefined ? packagedProviders() : ((await Bun.file(file).json()) as unknown);
const text = await listText(providers, dated, file === undefined ? await packagedSource() : `${file} (MIT)`);
await Bun.write(LIST_PATH, text);
const rows = text.split("\n").filter((line) => line.includes('"model":')).length;
console.log(`${LIST_PATH}: ${rows} models`);
