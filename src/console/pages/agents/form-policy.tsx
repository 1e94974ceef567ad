import type { JSX } from "preact";
import { Lines, linesOf } from "../../parts/field.tsx";
import { Card } from "../../parts/page.tsx";
import { errorInList } from "./field-errors.ts";
import type { FormPart } from "./form-part.ts";
import { PolicySection } from "./policy-section.tsx";

/** Tiers and models. Tiers are ticked in the matrix, which follows the patterns being typed. */
export function PolicyFields({ draft, change, problem }: FormPart): JSX.Element {
  const tierError = errorInList(problem, "/tier_policy/tiers", "");
  return (
    <Card title="Tiers and models">
      <div class="form-columns">
        <Lines
          label="Allowed models"
          rows={3}
          values={draft.allow}
          change={(allow) => change({ allow })}
          hint="Patterns, one per line. * matches anything: local/* is every model of the provider local."
          error={errorInList(problem, "/tier_policy/models/allow", draft.allow)}
        />
        <Lines
          label="Denied models"
          rows={3}
          values={draft.deny}
          change={(deny) => change({ deny })}
          hint="Patterns, one per line. They override what is allowed."
          error={errorInList(problem, "/tier_policy/models/deny", draft.deny)}
        />
      </div>
      <p>Tick the tiers it may use.</p>
      {tierError && <p class="warning">{tierError}</p>}
      <PolicySection
        policy={{ tiers: draft.tiers, allow: linesOf(draft.allow), deny: linesOf(draft.deny) }}
        toggle={(tier, ticked) =>
          change({
            tiers: ticked.includes(tier)
              ? ticked.filter((other) => other !== tier)
              : [...ticked, tier].sort((one, other) => one - other),
          })
        }
      />
      {draft.tiers === null && (
        <p class="muted small">All are ticked, so tiers configured later are allowed too.</p>
      )}
    </Card>
  );
}
