import { isAddress } from "../../config/address-range.ts";
import { ConnectorError } from "../source.ts";
import type { AddressRules } from "./addresses.ts";

/** Servers typically accept about 8,000; more than this is a mistake or an attack. */
const MAX_URL_CHARACTERS = 16_384;

/** Names used only for cloud metadata, whatever they resolve to. */
const METADATA_NAMES: ReadonlySet<string> = new Set([
  "metadata.google.internal",
  "metadata.goog",
  "metadata.azure.internal",
  "instance-data.ec2.internal",
  "metadata.tencentyun.com",
]);

/**
 * Returns the URL if connectors may request it, as far as this can be checked without resolving its name: http or
 * https, no user or password, no refused address in any notation. The error's message starts with "The URL" and
 * repeats at most its host.
 *
 * @throws ConnectorError `forbidden_address`
 */
export function checkUrl(text: string | URL, rules: AddressRules): URL {
  const problem = (words: string) => new ConnectorError("forbidden_address", `The URL ${words}.`);
  const written = String(text);
  if (written.length > MAX_URL_CHARACTERS) throw problem(`is longer than ${MAX_URL_CHARACTERS} characters`);
  const url = URL.parse(written);
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw problem("must begin with http:// or https://");
  }
  if (url.username !== "" || url.password !== "") throw problem("must not contain a user or a password");
  const host = plainHost(url);
  if (host === "") throw problem("has no host");
  const address = isAddress(host);
  if (METADATA_NAMES.has(host) || (address && rules.refuses(host))) throw problem(forbidden(host));
  return url;
}

/** The host without the brackets of IPv6 and without trailing dots. */
export function plainHost(url: URL): string {
  const host = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
  let end = host.length;
  while (host[end - 1] === ".") end--;
  return host.slice(0, end);
}

/** Continues "The URL". The address itself is not named, since a name may resolve to a private one. */
export function forbidden(host: string): string {
  return `leads to ${host}, a link-local, metadata or multicast address, which connectors may not reach (see connectors.allow_addresses)`;
}
