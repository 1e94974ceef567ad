import { openWebhookSecret } from "./secret.ts";
import { Webhook, type WebhookParts } from "./webhook.ts";

export interface OpenWebhookParts extends Omit<WebhookParts, "url" | "secret"> {
  readonly config: { readonly webhook?: string; readonly secret?: string };
  readonly dataDir: string;
}

/**
 * The configured webhook; null if there is none.
 * @throws OperatorError if its secret file cannot be used
 */
export function openWebhook({ config, dataDir, ...parts }: OpenWebhookParts): Webhook | null {
  if (config.webhook === undefined) return null;
  const secret = openWebhookSecret({ configured: config.secret, dataDir, random: parts.random });
  return new Webhook({ ...parts, url: config.webhook, secret });
}
