import type { JSX } from "preact";
import { Card } from "../../parts/page.tsx";
import type { EntryCheck, ProofNode } from "./check-entry.ts";
import { rangeText } from "./hash-text.ts";

/** The drawing as a table, with complete hashes. */
export function ProofTable({ check }: { readonly check: EntryCheck }): JSX.Element | null {
  const { steps, root, isRootSigned, signed } = check;
  if (root === null) return null;
  return (
    <Card title="All hashes">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1). */}
      <section class="table-frame" tabIndex={0} aria-label="All hashes of the proof">
        <table class="proof-table">
          <caption class="unseen">The path from the leaf to the root</caption>
          <thead>
            <tr>
              <th scope="col">Level</th>
              <th scope="col">Computed here</th>
              <th scope="col">Sibling, from the server</th>
            </tr>
          </thead>
          <tbody>
            {steps.map(({ own, sibling, side }, level) => (
              <tr key={own.range.end - own.range.start}>
                <th scope="row">{level === 0 ? "Leaf" : level}</th>
                <td>
                  <Hash node={own} />
                </td>
                <td>
                  <Hash node={sibling} place={`on the ${side}, `} />
                </td>
              </tr>
            ))}
            <tr>
              <th scope="row">Root</th>
              <td>
                <Hash node={root} />
              </td>
              <td>
                {isRootSigned ? (
                  "It is the root in the checkpoint."
                ) : (
                  <span class="proof-wrong">
                    The checkpoint has a different root
                    {signed.checkpoint && (
                      <>
                        : <code class="break">{signed.checkpoint.root.toHex()}</code>
                      </>
                    )}
                  </span>
                )}
              </td>
            </tr>
          </tbody>
        </table>
      </section>
    </Card>
  );
}

function Hash({ node, place = "" }: { readonly node: ProofNode; readonly place?: string }): JSX.Element {
  return (
    <>
      <code class="break">{node.hash.toHex()}</code>
      <span class="muted small">
        {" "}
        {place}
        {rangeText(node.range)}
      </span>
    </>
  );
}
