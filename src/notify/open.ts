import { openWebhookSecret, type WebhookSecretStore } from "./secret.ts";
import { Webhook, type WebhookParts } from "./webhook.ts";

export interface OpenWebhookParts extends Omit<WebhookParts, "url" | "secret"> {
  readonly config: { readonly webhook?: string; readonly secret?: string };
  readonly secretStore: WebhookSecretStore;
}

/**
 * The configured webhook; null if there is none.
 * @throws OperatorError if its secret cannot be used
 */
export async function openWebhook({
  config,
  secretStore,
  ...parts
}: OpenWebhookParts): Promise<Webhook | null> {
  if (config.webhook === undefined) return null;
  const secret = await openWebhookSecret({ configured: config.secret, secretStore, random: parts.random });
  return new Webhook({ ...parts, url: config.webhook, secret });
}
