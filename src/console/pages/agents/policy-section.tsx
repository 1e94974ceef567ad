import type { JSX } from "preact";
import { ProblemNote } from "../../parts/problem.tsx";
import type { Policy } from "./policy.ts";
import { PolicyMatrix, type TierChoice } from "./policy-matrix.tsx";
import { useModels, useTiers } from "./use-whole.ts";

/** The matrix for this server's tiers and models. `tiers` null: all tiers. */
export function PolicySection({
  policy,
  toggle,
}: {
  readonly policy: Omit<Policy, "tiers"> & { readonly tiers: readonly number[] | null };
  /** Called with the tiers that are ticked, if the reader may tick them. */
  readonly toggle?: (tier: number, ticked: readonly number[]) => void;
}): JSX.Element {
  const tiers = useTiers();
  const models = useModels();
  const problem = tiers.problem ?? models.problem;
  const ticked = policy.tiers ?? tiers.items.map(({ tier }) => tier);
  const choice: TierChoice | undefined = toggle && { toggle: (tier) => toggle(tier, ticked) };
  return (
    <div class="stack-small">
      <ProblemNote
        problem={problem}
        retry={() => {
          tiers.reload();
          models.reload();
        }}
      />
      {tiers.items.length > 0 ? (
        <PolicyMatrix
          policy={{ ...policy, tiers: ticked }}
          tiers={tiers.items}
          models={models.items}
          {...(choice ? { choice } : {})}
        />
      ) : (
        tiers.isLoading && <p class="muted">Loading …</p>
      )}
    </div>
  );
}
