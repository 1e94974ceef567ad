import type { Model, Tier } from "../../../../http/api.ts";

/** Tiers and prices as `gatehouse.yaml` would have them. A model that is not listed costs nothing. */
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

/** Plain where no reader of YAML could take it for anything else; JSON's strings are YAML's as well (YAML 1.2, section 7.3.1). */
function scalar(text: string): string {
  return /^[A-Za-z][\w.-]*\/[\w./:-]*\w$/.test(text) ? text : JSON.stringify(text);
}
