import { Type } from "typebox";
import type { Price } from "../../base/call-cost.ts";
import { validator } from "../../base/schema.ts";
import type { ProviderKind } from "../../config/config.ts";

const usd = Type.Optional(Type.String({ pattern: "^[0-9]+(?:\\.[0-9]+)?$" }));
const schema = validator(
  Type.Object({
    dated: Type.String(),
    source: Type.String(),
    kinds: Type.Record(
      Type.String(),
      Type.Object({
        /** Kinds that also offer these models, under the same names. */
        also: Type.Array(Type.String()),
        models: Type.Array(
          Type.Object({
            model: Type.String(),
            match: Type.Unknown(),
            ...{ input: usd, output: usd, cached_input: usd, cache_writes: usd, reasoning: usd },
          }),
        ),
      }),
    ),
  }),
);
type ListedModel = ReturnType<typeof schema.parse>["kinds"][string]["models"][number];

const GREATEST = BigInt(Number.MAX_SAFE_INTEGER);

/** The shipped price list: US dollars per million tokens, by kind of provider and model. */
export class PriceList {
  /** The day of its source, `YYYY-MM-DD`. */
  readonly dated: string;
  readonly #list: ReturnType<typeof schema.parse>;

  /** @throws Problem if the value is not a price list */
  constructor(value: unknown) {
    this.#list = schema.parse(value);
    this.dated = this.#list.dated;
  }

  /**
   * The price of a model, by its name at the provider, in micro-credits per 1,000 tokens, each rounded up. Undefined if
   * it is not listed, or not sold by tokens.
   */
  price(kind: ProviderKind, name: string, microsPerUsd: number): Price | undefined {
    const row = this.#find(kind, name);
    if (row?.input === undefined || row.output === undefined) return undefined;
    const { input, output, cached_input: cached, cache_writes: writes, reasoning } = row;
    const micros = (price: string) => microsOf(price, microsPerUsd);
    return {
      ...{ input: micros(input), output: micros(output) },
      ...(cached === undefined ? {} : { cachedInput: micros(cached) }),
      ...(writes === undefined ? {} : { cacheWrites: micros(writes) }),
      ...(reasoning === undefined ? {} : { reasoning: micros(reasoning) }),
    };
  }

  #find(kind: string, name: string): ListedModel | undefined {
    const listed = this.#list.kinds[kind];
    const own = listed?.models.find(({ match }) => isMatch(match, name));
    if (own) return own;
    for (const other of listed?.also ?? []) {
      const found = this.#find(other, name);
      if (found) return found;
    }
    return undefined;
  }
}

/** Dollars per million tokens as micro-credits per thousand, rounded up. */
function microsOf(usdPerMillion: string, microsPerUsd: number): number {
  const [whole = "", fraction = ""] = usdPerMillion.split(".");
  const scale = 10n ** BigInt(fraction.length) * 1_000n;
  const micros = (BigInt(whole + fraction) * BigInt(microsPerUsd) + scale - 1n) / scale;
  return micros < GREATEST ? Number(micros) : Number.MAX_SAFE_INTEGER;
}

/** Whether a rule of the source matches a model's name. Only regular expressions distinguish upper and lower case. */
function isMatch(rule: unknown, name: string): boolean {
  if (typeof rule !== "object" || rule === null) return false;
  const [[kind, value] = []] = Object.entries(rule) as [string, unknown][];
  if (Array.isArray(value)) {
    const rules: readonly unknown[] = value;
    if (kind === "or") return rules.some((each) => isMatch(each, name));
    return kind === "and" && rules.every((each) => isMatch(each, name));
  }
  if (typeof value !== "string") return false;
  const [text, part] = [name.toLowerCase(), value.toLowerCase()];
  switch (kind) {
    case "equals":
      return text === part;
    case "starts_with":
      return text.startsWith(part);
    case "ends_with":
      return text.endsWith(part);
    case "contains":
      return text.includes(part);
    case "regex":
      return new RegExp(value).test(name);
    default:
      return false;
  }
}
