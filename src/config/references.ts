import type { ResolvedValue } from "./config.ts";
import type { ConfigProblem } from "./problems.ts";
import { providerProblems } from "./provider-fields.ts";
import { plainName } from "./redact.ts";
import { TABLE } from "./table.ts";

/**
 * Problems between settings that are valid on their own.
 * @param providers names of the existing providers
 * @param refused keys whose values are refused already, so they are not among the values
 */
export function referenceProblems(
  values: readonly ResolvedValue[],
  providers: ReadonlySet<string>,
  refused: ReadonlySet<string>,
): ConfigProblem[] {
  return [
    ...storeListen(values, refused),
    ...models(values, providers),
    ...aliases(values, providers),
    ...providerProblems(values, refused),
  ];
}

/** Without `store`, a direct URL would look like the store, but the server would use SQLite. */
function storeListen(values: readonly ResolvedValue[], refused: ReadonlySet<string>): ConfigProblem[] {
  const [store, listen] = [TABLE.store, TABLE.storeListen].map(({ key }) =>
    values.find((each) => each.key === key),
  );
  if (listen?.value === undefined || store?.value !== undefined || refused.has(TABLE.store.key)) return [];
  const message = "is set without store; set store, or remove it";
  return [{ key: TABLE.storeListen.key, where: listen.detail, message }];
}

/** An alias leads to a model of an existing provider or to an existing tier, never to another alias. */
function aliases(values: readonly ResolvedValue[], providers: ReadonlySet<string>): ConfigProblem[] {
  const tiers = new Set(values.flatMap(({ path }) => (path[0] === "tiers" ? [`tier:${path[1]}`] : [])));
  const names = values.filter(({ path }) => path[0] === "tiers" && path[2] === "name");
  const known = new Set([...tiers, ...names.map(({ value }) => value)]);
  return values
    .filter(({ path }) => path[0] === "aliases")
    .flatMap(({ key, path, value, detail }) => {
      const target = String(value);
      const slash = target.indexOf("/");
      const provider = target.slice(0, slash);
      const isKnown =
        slash > 0
          ? providers.has(provider) || target === "builtin/extractive"
          : // Default tiers depend on what is found later.
            tiers.size === 0 || known.has(target);
      const repeatsNothing = target.includes("*") && !(path[1] ?? "").includes("*");
      if (isKnown && !repeatsNothing) return [];
      const message = repeatsNothing
        ? `is ${target}, whose * has nothing to repeat: the alias has no *`
        : `is ${target}, which is neither a model of a configured provider nor a configured tier`;
      return [{ key: plainName(key), where: detail, message }];
    });
}

/** Models of tiers and embeddings must belong to an existing provider. */
function models(values: readonly ResolvedValue[], providers: ReadonlySet<string>): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const check = (value: ResolvedValue, key: string, model: string, builtin: string): void => {
    if (model === "") return;
    const provider = model.slice(0, model.indexOf("/"));
    if (model === builtin || (provider !== "builtin" && providers.has(provider))) return;
    const configured =
      providers.size === 0 ? "there is none" : `there are ${[...providers].map(plainName).join(", ")}`;
    const message =
      provider === "builtin"
        ? `is ${model}, which does not exist; the built-in one is ${builtin}`
        : `is ${model}, but no provider ${provider} is configured; ${configured}`;
    problems.push({ key: plainName(key), where: value.detail, message });
  };
  for (const value of values) {
    if (value.path[0] === "tiers" && typeof value.value === "object") {
      for (const [index, model] of value.value.entries()) {
        check(value, `${value.key}[${index}]`, model, "builtin/extractive");
      }
    } else if (value.key === TABLE.embeddingsModel.key && typeof value.value === "string") {
      check(value, value.key, value.value, "builtin/lexical");
      problems.push(...withoutEmbeddings(values, value, value.value));
    }
  }
  return problems;
}

/** Anthropic's API has no embeddings. A provider without rows was detected by its key and is named after its kind. */
function withoutEmbeddings(
  values: readonly ResolvedValue[],
  { key, detail }: ResolvedValue,
  model: string,
): ConfigProblem[] {
  const provider = model.slice(0, model.indexOf("/"));
  const row = values.find(({ path: [group, name, field] }) => {
    return group === "providers" && name === provider && field === "kind";
  });
  if ((row ? row.value : provider) !== "anthropic") return [];
  const message = `is ${model}, but providers of kind anthropic have no embeddings; the other kinds and builtin/lexical do`;
  return [{ key, where: detail, message }];
}
