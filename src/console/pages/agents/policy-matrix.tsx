import type { JSX } from "preact";
import type { Tier } from "../../../http/api.ts";
import { creditsText } from "../../parts/text.tsx";
import type { Model } from "../../state/model.ts";
import { type ModelVerdict, modelsOf, type Policy, routeOf, verdictOn } from "./policy.ts";

/** Lets the reader tick tiers. */
export interface TierChoice {
  readonly toggle: (tier: number) => void;
}

/**
 * Tiers by models: which models an agent may use, each model's place in the tier's route, and why a model is
 * excluded. With `choice`, the tiers can be ticked.
 */
export function PolicyMatrix({
  policy,
  tiers,
  models,
  choice,
}: {
  readonly policy: Policy;
  readonly tiers: readonly Tier[];
  readonly models: readonly Model[];
  readonly choice?: TierChoice;
}): JSX.Element {
  const prices = new Map(models.map(({ name, price }) => [name, price]));
  return (
    <div class="stack-small">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1). */}
      <section class="table-frame" tabIndex={0} aria-label="Tiers and models">
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">Model</th>
              {tiers.map((tier) => (
                <th key={tier.tier} scope="col">
                  <TierHead tier={tier} isTicked={policy.tiers.includes(tier.tier)} choice={choice} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {modelsOf(tiers).map((model) => (
              <tr key={model}>
                <th scope="row">
                  <ModelName name={model} />
                  <Price price={prices.get(model)} />
                </th>
                {tiers.map((tier) => (
                  <td key={tier.tier}>
                    <Cell verdict={verdictOn(policy, tier, model)} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <p class="muted small">
        The number is the model's place in the tier's route: if a model fails, the next one is tried. A denied
        model stays denied, even if another pattern allows it.
      </p>
      <Routes policy={policy} tiers={tiers} />
    </div>
  );
}

/** A model's name, which may wrap only after the provider. */
function ModelName({ name }: { readonly name: string }): JSX.Element {
  const end = name.indexOf("/") + 1;
  return (
    <span class="mono">
      {name.slice(0, end)}
      <wbr />
      {name.slice(end)}
    </span>
  );
}

function TierHead({
  tier: { tier, name },
  isTicked,
  choice,
}: {
  readonly tier: Tier;
  readonly isTicked: boolean;
  readonly choice: TierChoice | undefined;
}): JSX.Element {
  const label = name === null || name === "" ? `Tier ${tier}` : `Tier ${tier} · ${name}`;
  if (!choice) return <>{label}</>;
  return (
    <label class="matrix-tier">
      <input type="checkbox" checked={isTicked} onChange={() => choice.toggle(tier)} />
      {label}
    </label>
  );
}

function Price({ price }: { readonly price: Model["price"] | undefined }): JSX.Element | null {
  if (!price) return null;
  const isFree = price.input === 0 && price.output === 0;
  const text = isFree ? "no price" : `${creditsText(price.input)} in, ${creditsText(price.output)} out`;
  return (
    <span class="muted small number matrix-price" title="Credits for 1,000 tokens">
      {text}
    </span>
  );
}

const WORDS = { allowed: "allowed", tier: "denied by tier", pattern: "denied by pattern" } as const;
const MARKS = { allowed: "✓", tier: "–", pattern: "✕" } as const;

function Cell({ verdict }: { readonly verdict: ModelVerdict }): JSX.Element {
  if (verdict.kind === "absent") return <span class="muted small">not in this tier</span>;
  return (
    <span class="verdict" data-kind={verdict.kind}>
      <span class="verdict-place number" title="Place in the tier's route">
        {verdict.place}
      </span>
      <span>
        <span aria-hidden="true">{MARKS[verdict.kind]} </span>
        {WORDS[verdict.kind]}
        {verdict.kind === "pattern" && (
          <span class="verdict-reason">
            {verdict.pattern === null ? "no pattern allows it" : <code>{verdict.pattern}</code>}
          </span>
        )}
      </span>
    </span>
  );
}

/** The models that a task of each allowed tier would try, in words. */
function Routes({
  policy,
  tiers,
}: {
  readonly policy: Policy;
  readonly tiers: readonly Tier[];
}): JSX.Element {
  const chosen = tiers.filter(({ tier }) => policy.tiers.includes(tier));
  const unknown = policy.tiers.filter((number) => !tiers.some(({ tier }) => tier === number));
  return (
    <div class="stack-small small" role="status">
      {chosen.length === 0 && <p class="warning">No tier is allowed: every task of this agent is refused.</p>}
      {chosen.map((tier) => {
        const route = routeOf(policy, tier);
        return route.length > 0 ? (
          <p key={tier.tier}>
            Tier {tier.tier} tries <span class="mono break">{route.join(" → ")}</span>
          </p>
        ) : (
          <p key={tier.tier} class="warning">
            Tier {tier.tier} is allowed, but none of its models: its tasks are refused.
          </p>
        );
      })}
      {unknown.length > 0 && (
        <p class="warning">Allowed, but not configured on this server: tier {unknown.join(", ")}.</p>
      )}
    </div>
  );
}
