import type { EmbeddingModelV4, LanguageModelV4 } from "@ai-sdk/provider";
import { allowsModel, allowsTier, type TierPolicy } from "../access/tier-policy.ts";
import type { Price } from "../base/call-cost.ts";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Config, ProviderKind } from "../config/config.ts";
import { FairSlots } from "../limits/fair-slots.ts";
import { guardEmbeddingModel, guardLanguageModel } from "./guard.ts";
import { isEmbedded, ModelNames, type ModelTarget } from "./names.ts";
import { type Dialect, type NativeAnswer, type NativeRequest, sendNative } from "./native.ts";
import { type ModelPrice, openPriceBook } from "./prices/price-book.ts";
import { createProviders, type Provider } from "./providers/index.ts";
import { Tiers } from "./tiers.ts";

/** A model that may be called, with its name in the configuration. */
export interface OpenModel {
  readonly id: string;
  readonly model: LanguageModelV4;
  /** The longest silence that is tolerated from the provider, in milliseconds. */
  readonly patienceMs: number;
}

/** A model whose provider speaks the client's dialect. */
export interface NativeModel {
  /** The provider's name for it. */
  readonly name: string;
  /**
   * Sends a request. The policy is checked again first.
   * @throws Problem 403 `model_forbidden` before anything is sent; a TimeoutError; fetch's errors
   */
  send(request: NativeRequest): Promise<NativeAnswer>;
}

/**
 * A model that a client may call, with every way to call it. Each way checks the policy again before anything is
 * sent.
 */
export interface ClientModel {
  readonly id: string;
  readonly kind: ProviderKind | "builtin";
  /** Null if its provider does not speak the client's dialect. */
  readonly native: NativeModel | null;
  language(): LanguageModelV4;
  /** Null if its provider makes no vectors. */
  embedding(): EmbeddingModelV4 | null;
  /** Masks the provider's address and credentials in text from the provider. */
  readonly hide: (text: string) => string;
}

/** The only access to models. Providers are not exposed, so no model can be reached without a policy and a tier. */
export interface ModelGateway {
  readonly tiers: Tiers;
  readonly names: ModelNames;
  price(model: string): Price;
  /** The price of a model, with its origin. */
  priceOf(model: string): ModelPrice;
  /**
   * The models of a tier that the policy allows, in the order in which to try them. `policy` is called again for each
   * model call: a model that has since been forbidden is refused with `model_forbidden` before anything is sent.
   * Answers are read in the workspace's turns.
   * @throws Problem 422 `unknown_tier`, `model_unpriced`, 403 `tier_forbidden`, `model_forbidden`
   */
  open(policy: () => TierPolicy, tier: number, workspaceId: number): readonly OpenModel[];
  /**
   * Like `open`, but for clients that name their model or tier themselves and speak a dialect.
   * @throws Problem 403 `model_forbidden`, `tier_forbidden`, 422 `model_unpriced`
   */
  openForClient(client: ModelClient, target: ModelTarget): readonly ClientModel[];
  /**
   * Waits for a request slot for the model. MUST be awaited before a call's intent is written, so that nothing delays
   * the request after the intent. Workspaces take turns, and the last slots are reserved for workspaces without
   * requests in flight. Embedded models need no slot. Rejects with the signal's reason, or if far more calls are
   * waiting than tasks can run.
   * @returns a function that MUST be called when the call has ended
   */
  enter(model: string, workspaceId: number, signal: AbortSignal): Promise<() => void>;
}

/** The client that names a model. */
export interface ModelClient {
  readonly dialect: Dialect;
  readonly workspaceId: number;
  policy(): TierPolicy;
}

/** Slots kept for workspaces without requests in flight. */
const KEPT_FOR_OTHERS = 8;
/** The maximum number of waiting calls. A node runs fewer tasks than that, and each waits for at most one slot. */
const MOST_WAITING = 100_000;

export type ModelConfig = Pick<Config, "providers" | "tiers" | "prices" | "priceList" | "aliases">;

/** @param requests the maximum number of model requests in flight */
export async function createModelGateway(
  config: ModelConfig,
  clock: Clock,
  requests: number,
): Promise<ModelGateway> {
  const providers = await createProviders(config.providers, clock);
  const slots = new FairSlots({
    slots: requests,
    keptForOthers: Math.min(KEPT_FOR_OTHERS, requests >> 2),
    waitingPerWorkspace: MOST_WAITING,
    waiting: MOST_WAITING,
  });
  const prices = await openPriceBook(config);
  const tiers = new Tiers(config.tiers, (model) => prices.refuses(model));
  const providerOf = (id: string): Provider => {
    const provider = providers.get(id.slice(0, id.indexOf("/")));
    if (!provider) throw new Error(`the provider of ${id} is not configured`);
    return provider;
  };
  return {
    tiers,
    names: new ModelNames(config),
    price: (model) => prices.of(model).price,
    priceOf: (model) => prices.of(model),
    open(policy, tier, workspaceId) {
      return tiers.route(policy(), tier).map((id) => {
        const provider = providerOf(id);
        return {
          id,
          model: guardLanguageModel(provider.model(ownName(id)), {
            ...{ id, workspaceId, timeoutMs: provider.timeoutMs, clock },
            check: () => check(policy(), tier, id),
          }),
          patienceMs: provider.timeoutMs,
        };
      });
    },
    openForClient(client, target) {
      return routeOf(tiers, client.policy(), target).map((id) => {
        const checked = () => checkTarget(tiers, client.policy(), target, id);
        return clientModel(providerOf(id), id, client, clock, checked);
      });
    },
    async enter(model, workspaceId, signal) {
      if (isEmbedded(model)) return () => {};
      const release = await slots.enter(workspaceId, signal);
      if (release === null) throw new Error(`${MOST_WAITING} model calls are already waiting`);
      return release;
    },
  };
}

function ownName(id: string): string {
  return id.slice(id.indexOf("/") + 1);
}

/** @throws Problem 403 `model_forbidden`, `tier_forbidden`, 422 `model_unpriced` */
function routeOf(tiers: Tiers, policy: TierPolicy, target: ModelTarget): readonly string[] {
  if (target.kind === "tier") return tiers.route(policy, target.tier);
  if (tiers.allowsNamed(policy, target.id)) return tiers.priced([target.id]);
  throw new Problem("model_forbidden", `The agent's policy does not allow ${target.id}.`);
}

function checkTarget(tiers: Tiers, policy: TierPolicy, target: ModelTarget, id: string): void {
  if (target.kind === "tier") check(policy, target.tier, id);
  else routeOf(tiers, policy, target);
}

/** Checks the policy at the call itself, not only when the route was determined. */
function check(policy: TierPolicy, tier: number, id: string): void {
  if (allowsTier(policy, tier) && allowsModel(policy, id)) return;
  throw new Problem("model_forbidden", `The agent's policy no longer allows ${id} in tier ${tier}.`);
}

function clientModel(
  provider: Provider,
  id: string,
  { dialect, workspaceId }: ModelClient,
  clock: Clock,
  check: () => void,
): ClientModel {
  const name = ownName(id);
  const { kind, timeoutMs } = provider;
  const endpoint = provider.native(dialect);
  const guards = { id, workspaceId, timeoutMs, clock, check };
  const native = endpoint && {
    name,
    async send(request: NativeRequest) {
      check();
      return sendNative(endpoint, request, timeoutMs, clock);
    },
  };
  return {
    ...{ id, kind, native },
    language: () => guardLanguageModel(provider.model(name), guards),
    embedding() {
      const model = provider.embeddingModel(name);
      return model ? guardEmbeddingModel(model, guards) : null;
    },
    hide: (text) => provider.hide(text),
  };
}
