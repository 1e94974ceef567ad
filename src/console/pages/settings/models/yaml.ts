import type { Tier } from "../../../../http/api.ts";
import type { Model } from "../../../state/model.ts";

/** Tiers and configured prices in the format of `gatehouse.yaml`. Prices from the price list are left out. */
export function yamlOf(tiers: readonly Tier[], models: readonly Model[]): string {
  const priced = models.filter(({ price_origin }) => price_origin === "config");
  return [
    "tiers:",
    ...tiers.map(
      ({ tier, name, models: route }) =>
        `  ${tier}: { name: ${JSON.stringify(name)}, models: [${route.map((model) => scalar(model.name)).join(", ")}] }`,
    ),
    ...(priced.length === 0 ? [] : ["models:"]),
    ...priced.map(
      ({ name, price }) =>
        `  ${scalar(name)}: { ${Object.entries(price)
          .map(([field, credits]) => `${field}: ${credits}`)
          .join(", ")} }`,
    ),
  ].join("\n");
}

/** Plain if it is unambiguous in YAML, otherwise a JSON string, which YAML also accepts (YAML 1.2, section 7.3.1). */
function scalar(text: string): string {
  return /^[A-Za-z][\w.-]*\/[\w./:-]*\w$/.test(text) ? text : JSON.stringify(text);
}
