import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { type ModelOverview, modelOverview } from "../models/overview.ts";
import { type ConfigOptions, command, resolveConfig } from "./options.ts";
import { printJson, printTable } from "./output.ts";

interface ModelsOptions extends ConfigOptions {
  readonly json?: boolean;
}

const HELP = `
Prices are credits for 1,000 tokens. A model is reachable if a connection to its provider can be opened
from here, without a proxy; no model is called, and no credentials are sent.`;

export function modelsCommand(): Command {
  return command("models", "list the configured models, their prices, and whether they can be reached")
    .option("--json", "print JSON")
    .addHelpText("after", HELP)
    .action(async (options: ModelsOptions) => {
      const { config } = await resolveConfig(options);
      const models = await modelOverview(config, systemClock);
      if (options.json) printJson(models);
      else printTable(["MODEL", "KIND", "TIERS", "PRICE", "PRICE FROM", "REACHABLE"], models.map(rowOf));
    });
}

function rowOf(model: ModelOverview): string[] {
  const { name, kind, tiers, reachable, unreachable_reason: reason } = model;
  const reach = reachable === null ? "-" : reachable ? "yes" : `no (${reason})`;
  return [name, kind, tiers.join(", ") || "-", priceText(model), originText(model), reach];
}

function priceText({ price, refused }: ModelOverview): string {
  if (price === null) return "-";
  if (refused) return "refused";
  const { input, output, cached_input: cached, cache_writes: writes, reasoning } = price;
  const parts = { in: input, out: output, cached, "cache writes": writes, reasoning };
  const shown = Object.entries(parts).flatMap(([part, credits]) =>
    credits === undefined ? [] : [`${credits} ${part}`],
  );
  return Object.values(price).every((credits) => credits === 0) ? "free" : shown.join(", ");
}

function originText({ price_origin: origin, price_dated: dated }: ModelOverview): string {
  return origin === null ? "-" : origin === "list" ? `list ${dated}` : origin;
}
