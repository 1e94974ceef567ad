import type { ProviderConfig, ProviderKind } from "../../config/config.ts";

const VENDOR_URLS: Readonly<Partial<Record<ProviderKind, string>>> = {
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com/v1",
  google: "https://generativelanguage.googleapis.com/v1beta",
};

/** Vertex AI with an API key ("express mode") belongs to no project. */
const VERTEX_WITH_KEY = "https://aiplatform.googleapis.com/v1/publishers/google";

/** The domains of AWS outside its largest partition, by the prefix of the region. */
const AWS_DOMAINS: readonly (readonly [region: string, domain: string])[] = [
  ["cn-", "amazonaws.com.cn"],
  ["us-isob-", "sc2s.sgov.gov"],
  ["us-iso-", "c2s.ic.gov"],
  ["eu-isoe-", "cloud.adc-e.uk"],
  ["us-isof-", "csp.hci.ic.gov"],
  ["eusc-", "amazonaws.eu"],
];

/**
 * The URL to which a provider's paths are appended, without a trailing slash: the configured one, or the vendor's.
 */
export function baseUrlOf(config: ProviderConfig): string {
  if (config.baseUrl !== undefined) return config.baseUrl;
  const { kind, resource = "", region = "" } = config;
  if (kind === "azure") return `https://${resource}.openai.azure.com/openai/v1`;
  if (kind === "bedrock") return `https://bedrock-runtime.${region}.${awsDomain(region)}`;
  if (kind === "vertex") return vertexUrl(config);
  return VENDOR_URLS[kind] ?? "";
}

/** The query of each request to a provider, including its question mark; may be empty. */
export function queryOf({ kind, baseUrl, apiVersion }: ProviderConfig): string {
  const version = apiVersion ?? (baseUrl === undefined ? "v1" : undefined);
  return kind === "azure" && version !== undefined ? `?api-version=${encodeURIComponent(version)}` : "";
}

function awsDomain(region: string): string {
  return AWS_DOMAINS.find(([prefix]) => region.startsWith(prefix))?.[1] ?? "amazonaws.com";
}

function vertexUrl({ credentials, project = "", location = "" }: ProviderConfig): string {
  if (credentials === undefined) return VERTEX_WITH_KEY;
  const host =
    location === "global"
      ? "aiplatform.googleapis.com"
      : location === "eu" || location === "us"
        ? `aiplatform.${location}.rep.googleapis.com`
        : `${location}-aiplatform.googleapis.com`;
  return `https://${host}/v1beta1/projects/${project}/locations/${location}/publishers/google`;
}
