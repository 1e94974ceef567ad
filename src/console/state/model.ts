import type { ModelView } from "../../http/api.ts";

/** A configured model. */
export type Model = ModelView & {
  readonly provider: string;
  readonly price: NonNullable<ModelView["price"]>;
};

/** False for the aliases and tiers that are listed among the models. */
export function isModel(view: ModelView): view is Model {
  return view.alias_of === null && view.provider !== null && view.price !== null;
}
