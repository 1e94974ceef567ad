import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import { isAddress } from "../../config/address-range.ts";
import type { Listen } from "../../config/listen.ts";

/**
 * The address that this Gatehouse listens on. Connectors may reach loopback, and a request from here would look like
 * one from the operator, who reads `/metrics` without a token. Indirect routes, such as a proxy, are detected by the
 * header that each request carries.
 */
export interface OwnAddress {
  /** Whether a connection to `address` (IPv4 or IPv6 as text; never a name) for this URL ends here. */
  is(address: string, url: URL): boolean;
}

/** @param listening the port actually bound; null while not listening, when the configured port counts */
export function ownAddress(configured: Listen, listening: () => number | null): OwnAddress {
  return {
    is(address, url) {
      const port = listening() ?? configured.port;
      if (port === 0 || !isAddress(address) || Number(url.port || defaultPort(url)) !== port) return false;
      const target = ipaddr.process(address).toString();
      if (isAddress(configured.host) && !isWildcard(configured.host)) {
        return ipaddr.process(configured.host).toString() === target;
      }
      return ipaddr.process(address).range() === "loopback" || interfaceAddresses().includes(target);
    },
  };
}

function defaultPort({ protocol }: URL): number {
  return protocol === "https:" ? 443 : 80;
}

function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((each = []) =>
    each.map(({ address }) => ipaddr.process(address.replace(/%.*$/, "")).toString()),
  );
}
