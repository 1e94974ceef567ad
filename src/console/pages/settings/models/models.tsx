import type { JSX } from "preact";
import type { Tier } from "../../../../http/api.ts";
import { Badge } from "../../../parts/badge.tsx";
import { Code } from "../../../parts/code.tsx";
import { Card } from "../../../parts/page.tsx";
import { Show } from "../../../parts/problem.tsx";
import { creditsText } from "../../../parts/text.tsx";
import { isModel, type Model } from "../../../state/model.ts";
import { useSession } from "../../../state/session.tsx";
import { useData } from "../../../state/use-data.ts";
import { yamlOf } from "./yaml.ts";

/** The configured tiers and models. They are read when the server starts and cannot be changed here. */
export function Models(): JSX.Element {
  const { session } = useSession();
  const tiers = useData("GET /v1/tiers", { query: { limit: 200 } });
  const models = useData("GET /v1/models", { query: {} });
  return (
    <>
      <p class="muted">
        Each task has a tier. The models of the tier's route are tried in order.
        {session.agent !== null && ` Models that ${session.agent} may not use are marked.`}
      </p>
      <Show of={tiers}>{({ data }) => <Tiers tiers={data} />}</Show>
      <Card title="Models">
        <p class="muted small">Prices are in credits per 1,000 input tokens and per 1,000 output tokens.</p>
        <Show of={models}>{({ data }) => <ModelTable models={data.filter(isModel)} />}</Show>
      </Card>
      {tiers.data && models.data && (
        <Card title="How to change them">
          <p class="muted">
            In <code>gatehouse.yaml</code> in the server's data directory, which is read when the server
            starts. This is its current content, without aliases, and without providers and their keys.
          </p>
          <Code label="gatehouse.yaml" text={yamlOf(tiers.data.data, models.data.data.filter(isModel))} />
          <p class="muted small">
            <code>gatehouse config check</code> checks the file before the server is started again.
          </p>
        </Card>
      )}
    </>
  );
}

function Tiers({ tiers }: { readonly tiers: readonly Tier[] }): JSX.Element {
  return (
    <div class="grid">
      {tiers.map(({ tier, name, models, allowed }) => (
        <Card key={tier} title={name === `tier ${tier}` ? `Tier ${tier}` : `Tier ${tier}: ${name}`}>
          {!allowed && <Badge tone="bad" text="not allowed" />}
          <ol class="settings-route">
            {models.map((model) => (
              <li key={model.name}>
                <code class="break">{model.name}</code>
                {allowed && !model.allowed && <Badge tone="bad" text="not allowed" />}
              </li>
            ))}
          </ol>
        </Card>
      ))}
    </div>
  );
}

function ModelTable({ models }: { readonly models: readonly Model[] }): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1).
    <section class="table-frame" tabIndex={0} aria-label="Models and their prices">
      <table>
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col">Provider</th>
            <th scope="col">Tiers</th>
            <th scope="col" class="end">
              Credits in
            </th>
            <th scope="col" class="end">
              Credits out
            </th>
          </tr>
        </thead>
        <tbody>
          {models.map(({ name, provider, tiers, price, allowed }) => (
            <tr key={name}>
              <th scope="row" class="mono">
                {name} {!allowed && <Badge tone="bad" text="not allowed" />}
              </th>
              <td>{provider}</td>
              <td class="number">{tiers.join(", ")}</td>
              <td class="end number">{priceText(price.input)}</td>
              <td class="end number">{priceText(price.output)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function priceText(credits: number): string {
  return credits === 0 ? "free" : creditsText(credits);
}
