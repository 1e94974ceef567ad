import type { Tier } from "../../../../http/api.ts";
import type { Model } from "../../../state/model.ts";

/** Tiers and prices in the format of `gatehouse.yaml`. Models that are not listed are free. */
export function yamlOf(tiers: readonly Tier[], models: readonly Model[]): string {
  const priced = models.filter(({ price }) => price.input !== 0 || price.output !== 0);
  return [
    "tiers:",
    ...tiers.map(
      ({ tier, name, models: route }) =>
        `  ${tier}: { name: ${JSON.stringify(name)}, models: [${route.map((model) => scalar(model.name)).join(", ")}] }`,
    ),
    ...(priced.length === 0 ? [] : ["models:"]),
    ...priced.map(
      ({ name, price }) => `  ${scalar(name)}: { input: ${price.input}, output: ${price.output} }`,
    ),
  ].join("\n");
}

/** Plain if it is unambiguous in YAML, otherwise a JSON string, which YAML also accepts (YAML 1.2, section 7.3.1). */
function scalar(text: string): string {
  return /^[A-Za-z][\w.-]*\/[\w./:-]*\w$/.test(text) ? text : JSON.stringify(text);
}
