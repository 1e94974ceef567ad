import type { JSX } from "preact";
import { Empty } from "../../../parts/page.tsx";
import { addressOfView, hasOptions, type SearchView } from "../address.ts";

/** Nothing was found: suggests other searches, each as a link. */
export function NothingFound({ view }: { readonly view: SearchView }): JSX.Element {
  const tries: readonly (readonly [boolean, string, Partial<SearchView>])[] = [
    [view.filter !== "", "Search without the metadata filter", { filter: "" }],
    [view.scope !== "", "Search in all scopes", { scope: "" }],
    [view.agent !== "", "Search as yourself", { agent: "" }],
    [view.mode !== "hybrid", "Search by words and vectors", { mode: "hybrid" }],
  ];
  return (
    <Empty
      title="Nothing was found"
      action={
        <div class="row">
          {tries.map(
            ([isShown, label, change]) =>
              isShown && (
                <a key={label} class="button" href={addressOfView({ ...view, ...change })}>
                  {label}
                </a>
              ),
          )}
        </div>
      }
    >
      No passage in the searched documents matches “<span class="break">{view.text.slice(0, 200)}</span>”.
      Words are compared by stem, so other forms of the same word do not help: try different or fewer words
      {hasOptions(view) || view.scope !== "" || view.agent !== "" ? ", or search more:" : "."}
    </Empty>
  );
}
